//! A page that shows live runs. For a browser this is the page; elsewhere, the program that builds it.

#[cfg(not(target_arch = "wasm32"))]
mod build;
#[cfg(target_arch = "wasm32")]
mod page;
#[cfg(target_arch = "wasm32")]
mod view;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[cfg(not(target_arch = "wasm32"))]
    return build::main();
    #[cfg(target_arch = "wasm32")]
    return page::main();
}
