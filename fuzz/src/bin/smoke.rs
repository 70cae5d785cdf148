//! Runs every target on the inputs that fuzzing begins with, then on changes of them from a fixed seed: what a
//! gate can do without a nightly toolchain. Takes a number of seconds for each target, 15 if there is none.

use std::env;
use std::io;
use std::time::{Duration, Instant};

use ag_ui_stream_fuzz::TARGETS;
use ag_ui_stream_fuzz::seeds::seeds;

/// Longer inputs are only slower.
const MAX_LEN: usize = 8192;
const TOKENS: [&str; 12] =
    ["\"", "{", "}", "[", "]", "\n", "null", "-1e400", "\\ud83d", "\"type\":", "\"messageId\":\"m\"", "\u{feff}"];

/// A fixed row of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Changes an input in one place; `other` is another input.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let from = random.below(input.len() + 1);
    let to = (from + random.below(40)).min(input.len());
    match random.below(6) {
        0 => {
            if let Some(byte) = input.get_mut(from) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => drop(input.drain(from..to)),
        2 => {
            let part = input[from..to].to_vec();
            input.splice(from..from, part);
        }
        3 => drop(input.splice(from..to, TOKENS[random.below(TOKENS.len())].bytes())),
        4 => {
            let start = random.below(other.len() + 1);
            input.splice(from..to, other[start..].iter().copied().take(random.below(400)).collect::<Vec<_>>());
        }
        _ => input.insert(from, random.below(256) as u8),
    }
    input.truncate(MAX_LEN);
}

fn main() -> io::Result<()> {
    let seconds = env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(15);
    let seeds = seeds()?;
    for (target, attack) in TARGETS {
        let inputs: Vec<&[u8]> =
            seeds.iter().filter(|seed| seed.target == target).map(|seed| seed.input.as_slice()).collect();
        inputs.iter().for_each(|input| attack(input));
        let (mut random, begun, mut count) = (Random(0x9e37_79b9_7f4a_7c15), Instant::now(), inputs.len());
        while begun.elapsed() < Duration::from_secs(seconds) {
            let mut input = inputs[random.below(inputs.len())].to_vec();
            for _ in 0..=random.below(8) {
                change(&mut input, inputs[random.below(inputs.len())], &mut random);
            }
            if let Err(panic) = std::panic::catch_unwind(|| attack(&input)) {
                eprintln!("{target} fails on {:?}", String::from_utf8_lossy(&input));
                eprintln!("as bytes: {input:?}");
                std::panic::resume_unwind(panic);
            }
            count += 1;
        }
        println!("{target}: {count} inputs");
    }
    Ok(())
}
