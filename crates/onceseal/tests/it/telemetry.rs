//! Traces: who builds them in gets them at the collector, who doesn't is told so.

use crate::home::Home;

#[cfg(not(feature = "otel"))]
#[test]
fn without_the_feature_a_collector_is_refused_and_the_feature_named() {
    let home = Home::new();
    let ran = home.run(&["serve", "--set", "telemetry.endpoint=http://127.0.0.1:4318"]);
    assert_eq!(ran.code(), 2);
    assert!(
        ran.error().contains("telemetry.endpoint") && ran.error().contains("\"otel\""),
        "{}",
        ran.error()
    );
}

#[cfg(feature = "otel")]
mod with_the_feature {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::Home;
    use crate::home::Running;

    const TRACE: [u8; 16] = *b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36";
    const PARENT: [u8; 8] = *b"\x00\xf0\x67\xaa\x0b\xa9\x02\xb7";

    /// Takes one export: its head in lower case, and its body.
    fn taken(collector: &TcpListener) -> (String, Vec<u8>) {
        let (mut stream, _) = collector.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        (head, body)
    }

    fn ask(server: &Running, more: &str) {
        let mut stream = TcpStream::connect(server.base.strip_prefix("http://").unwrap()).unwrap();
        let head = format!("GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn holds(body: &[u8], part: &[u8]) -> bool {
        body.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn a_request_is_exported_as_the_child_of_its_traceparent() {
        let home = Home::new();
        let collector = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("telemetry.endpoint=http://{}", collector.local_addr().unwrap());
        let serve = ["serve", "--listen", "127.0.0.1:0", "--set", &endpoint, "--set", "log.level=warn"];
        let server = home.serve_with(home.command(&serve));
        let parent = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
        ask(&server, &format!("{parent}tracestate: canary=1\r\nAuthorization: Bearer canary\r\n"));
        let export = std::thread::spawn(move || taken(&collector));
        assert_eq!(server.stop(), 0);
        let (head, body) = export.join().unwrap();
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
        assert!(holds(&body, &TRACE) && holds(&body, &PARENT) && holds(&body, b"request"));
        assert!(!holds(&body, b"canary") && !holds(&body, b"127.0.0.1"));
    }

    #[test]
    fn a_collector_that_is_gone_costs_its_spans_and_nothing_else() {
        let home = Home::new();
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let endpoint = format!("telemetry.endpoint=http://{gone}");
        let serve = ["serve", "--listen", "127.0.0.1:0", "--set", &endpoint];
        let server = home.serve_with(home.command(&serve));
        ask(&server, "");
        assert_eq!(server.stop(), 0);
        let log = std::fs::read_to_string(home.path("log")).unwrap();
        assert!(log.contains("traces_not_exported") && log.contains("refused"), "{log}");
    }

    #[test]
    fn an_address_with_a_password_is_refused() {
        let home = Home::new();
        let ran = home.run(&["config", "check", "--set", "telemetry.endpoint=http://a:CANARY@127.0.0.1"]);
        assert!(ran.code() == 2 && ran.error().contains("telemetry.endpoint"), "{}", ran.error());
        assert!(!ran.all().contains("CANARY"));
    }
}
