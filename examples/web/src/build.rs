//! Builds the page into `target/page`: the program, its binding to JavaScript, and the HTML.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use wasm_bindgen_cli_support::Bindgen;

/// What the command line says goes to cargo: `--release` makes the page small.
pub fn main() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = here.join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let profile = if std::env::args().any(|argument| argument == "--release") { "release" } else { "debug" };
    let built = Command::new(cargo)
        .current_dir(here)
        .args(["build", "--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(&target)
        .args(std::env::args_os().skip(1))
        .status()?;
    if !built.success() {
        return Err("the page does not compile; is there a standard library for it? `rustup target add \
                    wasm32-unknown-unknown`"
            .into());
    }
    let page = target.join("page");
    Bindgen::new()
        .input_path(target.join("wasm32-unknown-unknown").join(profile).join("ag-ui-stream-web.wasm"))
        .out_name("page")
        .web(true)?
        .typescript(false)
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(&page)?;
    std::fs::copy(here.join("index.html"), page.join("index.html"))?;
    println!("the page is in {}", page.display());
    Ok(())
}
