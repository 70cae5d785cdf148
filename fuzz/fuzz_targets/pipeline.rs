//! One event a line: what holds is in `src/pipeline.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ag_ui_stream_fuzz::pipeline::attack(input));
