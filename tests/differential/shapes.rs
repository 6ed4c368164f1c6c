// SPDX-License-Identifier: BSD-2-Clause
// shapes of Rust: panics past functions and into them, drops on the way, traits, generics, closures,
// async functions. Each s_ function is noted as called.h does it. The same calls on every run.
use std::fmt::Write as _;
use std::future::Future;
use std::hint::black_box;
use std::panic;
use std::pin::Pin;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

static mut LOG: Vec<(&str, usize)> = Vec::new();

/// What the noted return addresses are counted from.
#[no_mangle]
pub extern "C" fn called_anchor() {}

#[allow(static_mut_refs)]
fn note(name: &'static str, back: usize) {
    unsafe { LOG.push((name, back)) }
}

/// The return address lies above the frame pointer; built without frame pointers, it is not noted.
macro_rules! called {
    ($name:expr) => {
        let back: usize;
        unsafe {
            #[cfg(frames)]
            std::arch::asm!("mov {}, [rbp + 8]", out(reg) back);
            #[cfg(not(frames))]
            std::arch::asm!("xor {0:e}, {0:e}", out(reg) back);
        }
        note($name, back);
    };
}

/// A future that is pending once.
struct Later(bool);
impl Future for Later {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<()> {
        match std::mem::replace(&mut self.0, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

#[inline(never)]
fn s_leaf(x: u64) -> u64 {
    called!("s_leaf");
    black_box(x * 31 + 7)
}

#[inline(never)]
fn s_sibling(x: u64) -> u64 {
    called!("s_sibling");
    s_leaf(x + 1)
}

#[inline(never)]
fn s_matches(x: u64) -> u64 {
    called!("s_matches");
    match x % 7 {
        0 => s_leaf(x),
        1 => s_sibling(x) + 1,
        2 => x,
        3 => s_leaf(x) ^ s_leaf(x + 1),
        4 => s_sibling(x),
        5 => 3,
        _ => s_leaf(s_leaf(x)),
    }
}

#[inline(never)]
fn s_throws(x: u64) -> u64 {
    called!("s_throws");
    if x % 3 == 0 {
        note("-s_throws", 0);
        panic!("no {}", s_leaf(x));
    }
    s_leaf(x)
}

struct Guard(u64);
impl Drop for Guard {
    fn drop(&mut self) {
        s_leaf(self.0);
        if std::thread::panicking() {
            note("-s_passes", 0);
        }
    }
}

#[inline(never)]
fn s_passes(x: u64) -> u64 {
    called!("s_passes");
    let _guard = Guard(x);
    s_throws(x) + s_throws(x + 1)
}

#[inline(never)]
fn s_catches(x: u64) -> u64 {
    called!("s_catches");
    panic::catch_unwind(|| s_passes(black_box(x))).unwrap_or_else(|_| s_leaf(x))
}

trait Shape {
    fn s_method(&self, x: u64) -> u64;
}
struct Round(u64);
struct Square(u64);
impl Shape for Round {
    #[inline(never)]
    fn s_method(&self, x: u64) -> u64 {
        called!("s_method");
        s_leaf(x + self.0)
    }
}
impl Shape for Square {
    #[inline(never)]
    fn s_method(&self, x: u64) -> u64 {
        called!("s_method");
        if x % 2 == 0 {
            return self.0;
        }
        s_sibling(x * self.0)
    }
}

#[inline(never)]
fn s_dispatches(shapes: &[Box<dyn Shape>], x: u64) -> u64 {
    called!("s_dispatches");
    shapes.iter().map(|s| s.s_method(x)).fold(0, |a, b| a ^ b)
}

#[inline(never)]
fn s_generic<T: std::fmt::Debug>(what: T) -> Result<u64, std::fmt::Error> {
    called!("s_generic");
    let mut text = String::new();
    write!(text, "{:?}", what)?;
    Ok(s_leaf(text.len() as u64))
}

#[inline(never)]
fn s_recurses(n: u64, f: &dyn Fn(u64) -> u64) -> u64 {
    called!("s_recurses");
    if n == 0 {
        return f(0);
    }
    f(n) + s_recurses(n - 1, f) + black_box(1)
}

#[inline(never)]
async fn s_async(n: u64) -> u64 {
    let mut sum = 0;
    for i in 0..n {
        note("s_async{}", 0);
        sum += s_leaf(i);
        Later(false).await;
    }
    note("s_async{}", 0);
    sum
}

#[inline(never)]
fn s_polls(n: u64) -> u64 {
    called!("s_polls");
    const NOTHING: RawWakerVTable = RawWakerVTable::new(|_| WAKER, |_| {}, |_| {}, |_| {});
    const WAKER: RawWaker = RawWaker::new(std::ptr::null(), &NOTHING);
    let waker = unsafe { Waker::from_raw(WAKER) };
    note("s_async", 0);
    let mut future: Pin<Box<dyn Future<Output = u64>>> = Box::pin(s_async(n));
    loop {
        if let Poll::Ready(sum) = black_box(&mut future).as_mut().poll(&mut Context::from_waker(&waker)) {
            return sum;
        }
    }
}

#[allow(static_mut_refs)]
fn main() {
    let rounds = std::env::args().nth(1).map_or(30, |n| n.parse().unwrap());
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Round(3)), Box::new(Square(5))];
    let mut sum = 0u64;
    panic::set_hook(Box::new(|_| {}));
    for n in 0..rounds {
        sum = sum.wrapping_add(s_matches(n)).wrapping_add(s_catches(n)) ^ s_dispatches(&shapes, n);
        sum ^= s_generic(n).unwrap() + s_generic("text").unwrap() + s_generic((n, Some(1.5))).unwrap();
        sum ^= s_recurses(n % 5, &|x| s_leaf(x + n)) + s_polls(n % 4);
    }
    println!("{}", sum);
    if let Some(path) = std::env::var_os("CALLED_OUT") {
        let anchor = called_anchor as *const () as usize;
        let lines = unsafe { LOG.iter() }.map(|&(name, back)| {
            format!("{} {}\n", name, if back == 0 { 0 } else { back.wrapping_sub(anchor) as i64 })
        });
        std::fs::write(path, lines.collect::<String>()).unwrap();
    }
}
