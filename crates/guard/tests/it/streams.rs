//! Streams: nothing of a secret leaves, wherever the chunks are cut, and what is innocent leaves as it came.

use guard::{Exposure, Guard, OVERLAP, Window};
use proptest::prelude::{any, prop, proptest};
use proptest::{prop_assert, prop_assert_eq};

use crate::made_up::{BASE62, credentials, letters, new_guard};
use crate::passes::INNOCENT;

/// What leaves, and how it ended.
fn stream<'c>(guard: &Guard, chunks: impl Iterator<Item = &'c [u8]>) -> (Vec<u8>, Result<(), Exposure>) {
    let mut window = Window::new();
    let mut left = Vec::new();
    for chunk in chunks {
        match window.push(guard, "stream", chunk) {
            Ok(bytes) => left.extend(bytes),
            Err(exposure) => return (left, Err(exposure)),
        }
    }
    match window.finish() {
        Ok(bytes) => {
            left.extend(bytes);
            (left, Ok(()))
        }
        Err(exposure) => (left, Err(exposure)),
    }
}

#[test]
fn a_credential_is_found_at_every_border_of_two_chunks() {
    let guard = new_guard();
    let lead = "data: {\"text\":\"word after word\"}\n\n".repeat(40);
    for (rule, secret) in credentials() {
        let text = format!("{lead}\"{secret}\" and then");
        for cut in (lead.len()..lead.len() + secret.len() + 2).step_by(3) {
            let (left, end) = stream(&guard, [&text.as_bytes()[..cut], &text.as_bytes()[cut..]].into_iter());
            assert!(end.is_err(), "{rule} cut at {cut}");
            assert!(left.len() <= lead.len() && lead.as_bytes().starts_with(&left), "{rule} cut at {cut}");
        }
    }
}

#[test]
fn a_long_token_is_held_until_its_shape_shows() {
    let guard = new_guard();
    let token =
        format!("eyJ{}.eyJ{}.{}", letters(BASE62, 400, 1), letters(BASE62, 1500, 2), letters(BASE62, 86, 3));
    let text = format!("{} \"{token}\"", "x ".repeat(2000));
    let (left, end) = stream(&guard, text.as_bytes().chunks(11));
    assert!(end.is_err());
    assert!(!guard::canary::contains_run(&left, &token, 8));
}

#[test]
fn after_a_cut_nothing_leaves_any_more() {
    let (guard, mut window) = (new_guard(), Window::new());
    let secret = format!("sk-{}", letters(BASE62, 30, 1));
    let first = window.push(&guard, "stream", secret.as_bytes()).unwrap_err();
    assert_eq!(window.push(&guard, "stream", b"more").unwrap_err(), first);
    assert_eq!(window.finish().unwrap_err(), first);
}

#[test]
fn an_innocent_stream_leaves_as_it_came_and_no_later_than_needed() {
    let guard = new_guard();
    let text = format!("{}\n", INNOCENT.join(" \n ")).repeat(2);
    for size in [3, 7, 64, 511, 512, 513, 1000] {
        let (left, end) = stream(&guard, text.as_bytes().chunks(size));
        assert_eq!((end, left.len()), (Ok(()), text.len()), "chunks of {size}");
        assert_eq!(left, text.as_bytes());
    }
    let mut window = Window::new();
    let words = "word ".repeat(400);
    assert_eq!(window.push(&guard, "stream", words.as_bytes()).unwrap().len(), words.len() - OVERLAP);
}

proptest! {
    #[test]
    fn a_part_of_a_live_secret_is_found_however_the_stream_is_cut(
        cuts in prop::collection::vec(1_usize..700, 1..12), at in 0_usize..3000, seed in any::<u32>(),
    ) {
        let guard = new_guard();
        let secret = letters(BASE62, 40, seed);
        guard.remember("ck", &secret).unwrap();
        let mut text = "lorem ipsum, dolor. ".repeat(150);
        text.insert_str(at, &format!(" {} ", &secret[13..30]));
        let mut rest = text.as_bytes();
        let chunks = cuts.iter().cycle().map_while(|cut| {
            let (chunk, later) = rest.split_at((*cut).min(rest.len()));
            rest = later;
            (!chunk.is_empty()).then_some(chunk)
        });
        let (left, end) = stream(&guard, chunks);
        prop_assert!(end.is_err());
        prop_assert!(left.len() <= at + 1, "{} of {} left", left.len(), at);
    }

    #[test]
    fn any_bytes_without_a_hit_come_through_whole(bytes in prop::collection::vec(any::<u8>(), 0..3000), size in 1_usize..900) {
        let guard = new_guard();
        let (left, end) = stream(&guard, bytes.chunks(size));
        if end.is_ok() {
            prop_assert_eq!(left, bytes);
        }
    }
}
