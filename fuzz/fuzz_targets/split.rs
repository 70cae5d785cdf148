//! A schedule of two halves: what holds is in `src/split.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ag_ui_stream_fuzz::split::attack(input));
