// SPDX-License-Identifier: BSD-2-Clause
// Panics that are caught, through frames with and without something to drop. Prints how many.
use std::hint::black_box;
use std::panic;

#[inline(never)]
fn throws(x: u64) -> u64 {
    if x % 3 == 0 {
        panic!("no {}", x);
    }
    x + 1
}

#[inline(never)]
fn drops(x: u64) -> u64 {
    let held = vec![x; 10];
    throws(black_box(x)) + held[3]
}

#[inline(never)]
fn has_nothing_to_drop(x: u64) -> u64 {
    throws(black_box(x)) * 2
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let mut caught = 0;
    for i in 0..300 {
        caught += panic::catch_unwind(|| black_box(drops(i))).is_err() as u64;
        caught += panic::catch_unwind(|| black_box(has_nothing_to_drop(i))).is_err() as u64;
    }
    println!("{}", caught);
}
