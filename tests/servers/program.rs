// SPDX-License-Identifier: BSD-2-Clause
// Waits for a line, works, prints what it found and how often it called its functions.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{io, panic, thread};

static LEAFS: AtomicU64 = AtomicU64::new(0);
static PANICS: AtomicU64 = AtomicU64::new(0);
static SHOWN: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn leaf(x: u64) -> u64 {
    LEAFS.fetch_add(1, Relaxed);
    x * 31 + 7
}

#[inline(never)]
fn may_panic(n: u64) -> u64 {
    PANICS.fetch_add(1, Relaxed);
    if n % 3 == 0 {
        panic!("third");
    }
    leaf(n)
}

trait Shown {
    fn shown(&self) -> String;
}

impl Shown for u64 {
    #[inline(never)]
    fn shown(&self) -> String {
        SHOWN.fetch_add(1, Relaxed);
        format!("<{}>", self)
    }
}

fn work(seed: u64) -> (u64, u64, usize) {
    let mut words: BTreeMap<String, u64> = BTreeMap::new();
    let (mut total, mut caught) = (0, 0);
    for i in 0..200 {
        match panic::catch_unwind(|| may_panic(i)) {
            Ok(x) => total += x + seed,
            Err(_) => caught += 1,
        }
        let object: Box<dyn Shown> = Box::new(i % 40);
        *words.entry(object.shown()).or_insert(0) += i;
    }
    (total, caught, words.len())
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    writeln!(io::stderr(), "ready").unwrap();
    io::stdin().read_line(&mut String::new()).unwrap();
    let threads: Vec<_> = (0..8).map(|seed| thread::spawn(move || work(seed))).collect();
    let mut results = String::new();
    for thread in threads {
        write!(results, "{:?}", thread.join().unwrap()).unwrap();
    }
    println!(
        "{{\"calls\":{{\"program::leaf*\":{},\"program::may_panic*\":{},\"<u64 as program::Shown>::shown*\":{}}},\"results\":\"{}\"}}",
        LEAFS.load(Relaxed), PANICS.load(Relaxed), SHOWN.load(Relaxed), results
    );
}
