//! Streams of random numbers: reproducible, and uniform.

use trafoc::learn::random::Stream;

#[test]
fn streams_are_the_same_every_time_and_differ_by_purpose() {
    let first = |purpose, number| Stream::new(7, purpose, number).bits();
    assert_eq!(first("order", 0), first("order", 0));
    assert_ne!(first("order", 0), first("order", 1));
    assert_ne!(first("order", 0), first("mask", 0));
}

#[test]
fn a_shuffle_keeps_everything_and_is_fair() {
    let mut counts = [[0u32; 3]; 3];
    for seed in 0..6_000 {
        let mut items = [0usize, 1, 2];
        Stream::new(seed, "order", 0).shuffle(&mut items);
        items.iter().enumerate().for_each(|(place, item)| counts[place][*item] += 1);
    }
    // 2,000 are expected, with a standard deviation of 37.
    assert!(counts.iter().flatten().all(|n| (1_850..2_150).contains(n)), "{counts:?}");
}
