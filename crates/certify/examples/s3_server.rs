//! The tests' server of S3's protocol on its own, for runs of several server programs:
//! `cargo run -p certify --example s3_server -- 127.0.0.1:9000 FOLDER ID SECRET`. It prints the value for
//! `ONCESEAL_TEST_S3` and runs until it is ended. Not for anything but tests.

#![expect(clippy::expect_used, reason = "a test server that can't go on says why")]
#![expect(dead_code, reason = "faults are switched on by tests alone")]

#[path = "../tests/it/s3_server.rs"]
mod s3_server;

use std::io::Write as _;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, folder, id, secret] = arguments.as_slice() else {
        eprintln!("four arguments: ADDRESS FOLDER ID SECRET");
        std::process::exit(2);
    };
    let server = s3_server::Server::start(address, folder.as_ref(), id, secret).await;
    let mut out = std::io::stdout();
    writeln!(out, "http://{id}:{secret}@{}/{}", server.address, s3_server::BUCKET).expect("printed");
    out.flush().expect("printed");
    tokio::signal::ctrl_c().await.expect("a signal");
}
