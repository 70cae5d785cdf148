//! The page of `examples/web`, once it is built, as routes of axum: for `serve` and for the tests.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;

/// Where the page is.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/web/target/page")
}

/// `/`, and what it loads.
pub(crate) fn routes() -> Router {
    let files = [
        ("/", "index.html", "text/html"),
        ("/page.js", "page.js", "text/javascript"),
        ("/page_bg.wasm", "page_bg.wasm", "application/wasm"),
    ];
    files.into_iter().fold(Router::new(), |router, (path, file, media_type)| {
        router.route(
            path,
            get(move || async move {
                match tokio::fs::read(folder().join(file)).await {
                    Ok(bytes) => Ok(([(header::CONTENT_TYPE, media_type)], bytes)),
                    Err(_) => Err((StatusCode::NOT_FOUND, "the page is not built: see examples/web/README.md")),
                }
            }),
        )
    })
}
