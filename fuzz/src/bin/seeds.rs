//! Writes the inputs that fuzzing begins with to `fuzz/corpus`.

use std::path::Path;
use std::{fs, io};

use ag_ui_stream_fuzz::seeds::{Seed, seeds};

fn main() -> io::Result<()> {
    for Seed { target, name, input } in seeds()? {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), input)?;
    }
    Ok(())
}
