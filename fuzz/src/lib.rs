//! What the fuzz targets do with an input, and the inputs that they begin with.

pub mod decoders;
pub mod patch;
pub mod pipeline;
pub mod seeds;
pub mod split;
#[allow(dead_code, reason = "a test uses the rest")]
#[path = "../../tests/support/stages.rs"]
mod stages;

/// A fuzz target: panics where something does not hold.
pub type Attack = fn(&[u8]);

/// The targets, by name.
pub const TARGETS: [(&str, Attack); 4] = [
    ("decoders", decoders::attack),
    ("patch", patch::attack),
    ("pipeline", pipeline::attack),
    ("split", split::attack),
];
