//! A format, a length and bytes: what holds is in `src/decoders.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ag_ui_stream_fuzz::decoders::attack(input));
