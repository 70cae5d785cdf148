//! A document, then patches: what holds is in `src/patch.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ag_ui_stream_fuzz::patch::attack(input));
