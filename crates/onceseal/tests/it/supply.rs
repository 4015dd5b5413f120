//! The supply side in the program: one command starts it, what is wrong stops it, and its money adds up.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use auth::issuer::{Grant, Issuer, IssuerKey};
use auth::{Role, Scopes, UserType};
use kernel::Clock as _;
use onceseal::random::{OsRandom, SystemClock};
use serde_json::{Value as Json, json};
use testkit::CountingRandom;

use crate::home::{Home, Running};

const SCOPES: &str = "supply:account:read,supply:account:write,supply:package:read,supply:package:write,supply:package:publish";

/// A server that answers every request with this document; its address.
fn publisher(document: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let length = document.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            // Whoever asked may have gone.
            let _ = (&stream).write_all((head + &document).as_bytes());
        }
    });
    address
}

pub(crate) fn home() -> Home {
    let home = Home::new();
    home.configure("[supply]\nenabled = true\nscheduler_interval = \"100ms\"");
    // On a shared database keys are never made at a start.
    assert_eq!(home.run(&["init", "--supply"]).code(), 0);
    home
}

fn call(
    server: &Running,
    (method, path): (&str, &str),
    (token, key): (&str, &str),
    body: &str,
) -> (u16, Json) {
    let mut stream = TcpStream::connect(server.base.trim_start_matches("http://")).unwrap();
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         x-request-id: 6f1c0000-0000-4000-8000-{key:0>12}\r\nidempotency-key: key-of-the-call-{key}\r\n{kind}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer[9..12].parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")))
}

/// A call that must do; its `data`.
pub(crate) fn done(server: &Running, to: (&str, &str), who: (&str, &str), body: &Json) -> Json {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = call(server, to, who, &body);
    assert!((200..300).contains(&status), "{to:?}: {status} {answer}");
    answer["data"].clone()
}

/// A command about the market that `onceseal demo --supply --folder market` left.
pub(crate) fn in_market<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--config", "market/onceseal.toml"]].concat()
}

pub(crate) fn admin(home: &Home) -> String {
    let ran = home.run(&["supply", "admin", "ann"]);
    assert_eq!(ran.code(), 0, "{}", ran.all());
    ran.out().trim().to_owned()
}

#[test]
fn one_command_starts_it_and_a_supplier_mounts_and_publishes() {
    let home = home();
    let set = format!("supply.providers.openai={}", publisher(r#"{"data":[]}"#.into()));
    let server = home.serve_with(home.command(&["serve", "--listen", "127.0.0.1:0", "--set", &set]));
    let admin = admin(&home);
    let supplier = json!({ "code": "one", "name": "One", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000000" });
    let made = done(&server, ("POST", "/api/v1/platform/suppliers"), (&admin, "1"), &supplier);
    let (tenant, user) = (made["tenant_id"].to_string(), made["operator_id"].to_string());
    let who =
        ["--tenant", &tenant, "--user", &user, "--role", "owner", "--user-type", "supply", "--scope", SCOPES];
    let issued = home.run(&[&["token", "issue", "--platform"], &who[..]].concat());
    assert_eq!(issued.code(), 0, "{}", issued.all());
    let token = issued.out().trim().to_owned();
    let floor = json!({ "provider": "openai", "model": "gpt-x", "floor_input": 8, "floor_output": 32 });
    done(&server, ("PUT", "/api/v1/platform/price-protection"), (&admin, "2"), &floor);
    let mount = json!({ "provider": "openai", "account_type": "api_key", "credential_input": testkit::canary::credential("a"),
        "account_alias": "spare-1", "min_quota_threshold": 1000, "risk_ack": true });
    let account =
        done(&server, ("POST", "/api/v1/supply/accounts"), (&token, "3"), &mount)["account_id"].clone();
    let activate = format!("/api/v1/supply/accounts/{account}/activate");
    done(&server, ("POST", &activate), (&token, "4"), &Json::Null);
    let draft = json!({ "supply_account_id": account, "model": "gpt-x", "total_quota": 5_000_000,
        "price_per_1m_input": 8, "price_per_1m_output": 32, "valid_days": 30 });
    let draft = done(&server, ("POST", "/api/v1/supply/packages/draft"), (&token, "5"), &draft);
    let publish = format!("/api/v1/supply/packages/{}/publish", draft["package_id"]);
    assert_eq!(done(&server, ("POST", &publish), (&token, "6"), &Json::Null)["status"], "active");
    assert_eq!(home.run(&["ledger", "verify"]).code(), 0);
    let looked = || {
        let mut stream = TcpStream::connect(server.base.trim_start_matches("http://")).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).unwrap();
        metrics.contains("\nonceseal_ledger_verified_timestamp_seconds 1")
    };
    assert!((0..500).any(|_: u32| home.run(&["completions", "bash"]).code() == 0 && looked()));
    // A suspended account's packages are paused by the scheduler, in a while.
    let suspend = format!("/api/v1/supply/accounts/{account}/suspend");
    done(&server, ("POST", &suspend), (&token, "7"), &Json::Null);
    let shown = format!("/api/v1/supply/packages/{}", draft["package_id"]);
    let paused = |_| done(&server, ("GET", &shown), (&token, "8"), &Json::Null)["status"] == "paused";
    assert!((0..500).any(|n: u32| home.run(&["completions", "bash"]).code() == 0 && paused(n)));
    let mounted = || {
        let report = home.run(&["slo", "report", "--json"]);
        assert_eq!(report.code(), 3, "one supplier is fewer than ten: {}", report.all());
        let report: Json = serde_json::from_str(&report.out()).unwrap();
        report["buttons"][1].clone()
    };
    let told = mounted();
    assert_eq!(
        (&told["button"], &told["requests"], &told["errors"]),
        (&json!("BTN-ACC-002"), &json!(1), &json!(0))
    );
    let shown = home.run(&["slo", "report"]).out();
    assert!(shown.contains("BTN-PKG-002") && shown.contains("no_sample"), "{shown}");
    assert_eq!(server.stop(), 0);
    assert_eq!(mounted()["requests"], 1, "kept over the server's end");
}

/// A cached balance of a millionth of a minor unit that no entry knows, written behind the program's back.
fn spoil(home: &Home) {
    let settings = match testkit::postgres::beside(&home.path("")) {
        Some(database) => store::Settings::Postgres(database.settings()),
        None => store::Settings::folder(home.path("data")),
    };
    let chains = [store::migration::CORE, store::migration::CERTIFY, store::migration::SUPPLY];
    let clock = std::sync::Arc::new(testkit::MovableClock::at(1_774_576_984));
    let random = std::sync::Arc::new(CountingRandom::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = store::Store::open(&settings, &chains, clock).await.unwrap();
        let sql = "update billing_accounts set balance = $1 where account_code = 'supplier_available'";
        let write = store::Write::one("spoil", sql, vec![store::Value::Money(1)]);
        let door = door::Door::new(store, random);
        door.maintain("spoil", vec![], move |_, _| Ok((vec![write.clone()], ()))).await.unwrap();
    });
}

#[test]
fn what_does_not_add_up_is_listed_and_ends_with_three() {
    let home = home();
    let server = home.serve();
    let admin = admin(&home);
    let supplier = json!({ "code": "one", "name": "One", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000000" });
    done(&server, ("POST", "/api/v1/platform/suppliers"), (&admin, "1"), &supplier);
    assert_eq!(server.stop(), 0);
    assert_eq!(home.run(&["ledger", "verify"]).code(), 0);
    spoil(&home);
    let ran = home.run(&["ledger", "verify"]);
    assert!(ran.code() == 3 && ran.out().contains("supplier_available"), "{} {}", ran.code(), ran.all());
    let ran = home.run(&["ledger", "verify", "--json"]);
    assert!(ran.code() == 3 && ran.out().contains("violations"), "{}", ran.all());
}

#[test]
fn without_the_section_there_is_no_supply_side() {
    let home = Home::new();
    let server = home.serve();
    let ran = home.run(&["supply", "admin", "ann"]);
    assert!(ran.code() == 6 && ran.error().contains("supply.enabled"), "{}", ran.all());
    assert_eq!(call(&server, ("GET", "/api/v1/supply/accounts"), ("x", "1"), "").0, 404);
    assert!(!home.path("data/keys/supply").exists());
}

#[test]
fn withdrawals_without_sms_and_codes_in_the_log_are_refused() {
    let home = home();
    let refused = |settings: &[&str]| {
        let sets: Vec<&str> = settings.iter().flat_map(|setting| ["--set", *setting]).collect();
        let ran = home.run(&[&["serve", "--listen", "127.0.0.1:0"], &sets[..]].concat());
        assert_eq!(ran.code(), 2, "{}", ran.all());
        ran.error()
    };
    let told = refused(&["supply.withdraw_enabled=true"]);
    assert!(told.contains("supply.withdraw_enabled") && told.contains("supply.sms.sender"), "{told}");
    let told = refused(&["supply.withdraw_enabled=true", "supply.sms.sender=development"]);
    assert!(told.contains("supply.development"), "{told}");
    assert!(refused(&["supply.platform_fee_rate=\"15%\""]).contains("supply.platform_fee_rate"));
    assert!(refused(&["supply.platform_fee=\"0.1\""]).contains("unknown setting"));
    let sms = ["supply.withdraw_enabled=true", "supply.sms.sender=development", "supply.development=true"];
    let sets: Vec<&str> = sms.iter().flat_map(|setting| ["--set", *setting]).collect();
    let server = home.serve_with(home.command(&[&["serve", "--listen", "127.0.0.1:0"], &sets[..]].concat()));
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_key_that_is_missing_or_short_is_refused_by_name() {
    let home = home();
    home.write("short", "00112233");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let refused = |more: &[&str]| {
        let sets: Vec<&str> = more.iter().flat_map(|setting| ["--set", *setting]).collect();
        let ran = home.run(&[&serve[..], &sets[..]].concat());
        assert_eq!(ran.code(), 2, "{}", ran.all());
        ran.error()
    };
    let kek = "supply.keys.kek={1={file=\"data/keys/supply/kek-1\"}}";
    assert!(refused(&[kek]).contains("supply.keys.pepper is not set"));
    let named = |name: &str, file: &str| format!("supply.keys.{name}={{file=\"{file}\"}}");
    let file = |name: &str| named(name, &format!("data/keys/supply/{name}"));
    let rest = [file("idempotency"), file("guard"), file("buyer")];
    let with = |pepper: &str| {
        let all: Vec<&str> = [kek, pepper].into_iter().chain(rest.iter().map(String::as_str)).collect();
        refused(&all)
    };
    let told = with("supply.keys.pepper={env=\"NO_SUCH_VARIABLE\"}");
    assert!(told.contains("supply.keys.pepper: the variable NO_SUCH_VARIABLE holds no key"), "{told}");
    let told = with(&named("pepper", "short"));
    assert!(told.contains("supply.keys.pepper") && told.contains("holds 4 bytes"), "{told}");
}

#[test]
fn a_lost_key_is_not_made_anew_over_what_was_sealed_under_it() {
    let home = home();
    let server = home.serve();
    let supplier = json!({ "code": "one", "name": "One", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000000" });
    done(&server, ("POST", "/api/v1/platform/suppliers"), (&admin(&home), "1"), &supplier);
    server.stop();
    home.json(&["keys", "backup", "kept"]);
    std::fs::remove_file(home.path("data/keys/supply/kek-1")).unwrap();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code() == 1 && ran.error().contains("keys/supply/kek-1 is not there"), "{}", ran.all());
    home.json(&["keys", "restore", "kept"]);
    assert_eq!(home.serve().stop(), 0);
}

#[test]
fn nodes_of_one_database_never_make_issuers_of_their_own() {
    let home = home();
    let shared = testkit::postgres::beside(&home.path(".")).is_some();
    std::fs::remove_file(home.path("data/keys/supply/issuer-0001.pem")).unwrap();
    if !shared {
        // Alone, the first start makes it.
        assert_eq!(home.serve().stop(), 0);
        return assert!(home.path("data/keys/supply/issuer-0001.pem").exists());
    }
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code() == 1 && ran.error().contains("issuer-NNNN.pem"), "{}", ran.all());
    assert_eq!(home.run(&["init", "--supply"]).code(), 0);
    assert_eq!(home.serve().stop(), 0);
}

#[test]
fn the_schema_of_the_supply_side_comes_with_it_and_stays_when_it_is_off() {
    let home = home();
    home.serve().stop();
    let files = |home: &Home, arguments: &[&str]| {
        let status = home.json(&[&["migrate", "status"], arguments].concat());
        let files = status["files"].as_array().unwrap().clone();
        files
            .iter()
            .map(|file| format!("{} {}", file["name"], file["state"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    assert!(
        files(&home, &[]).contains(&"supply_runtime_schema_v1 applied".to_owned()),
        "{:?}",
        files(&home, &[])
    );
    let off = home.command(&["serve", "--listen", "127.0.0.1:0", "--set", "supply.enabled=false"]);
    assert_eq!(home.serve_with(off).stop(), 0);
}

#[test]
fn a_new_version_of_the_wrapping_key_takes_over_at_the_next_start() {
    let home = home();
    let quiet = ["serve", "--listen", "127.0.0.1:0", "--set", "supply.scheduler_interval=10m"];
    let server = home.serve_with(home.command(&quiet));
    let supplier = json!({ "code": "one", "name": "One", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000000" });
    done(&server, ("POST", "/api/v1/platform/suppliers"), (&admin(&home), "1"), &supplier);
    let versions = |home: &Home| {
        let list = home.json(&["supply", "keys", "list"]);
        let shown =
            |one: &Json| format!("{} {} {} {}", one["version"], one["status"], one["rows"], one["removable"]);
        let shown = list["versions"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>();
        shown.join(", ").replace('"', "")
    };
    assert_eq!(versions(&home), "1 active 1 false");
    assert_eq!(home.json(&["supply", "keys", "rotate"])["made"], "keys/supply/kek-2");
    assert_eq!(versions(&home), "1 active 1 false", "the server goes on with the one before");
    server.stop();
    let server = home.serve_with(home.command(&quiet));
    assert_eq!(versions(&home), "1 retired 1 false, 2 active 0 false");
    assert_eq!(home.json(&["supply", "keys", "rewrap"]), json!({ "rewrapped": 1, "left": 0 }));
    assert_eq!(versions(&home), "1 retired 0 true, 2 active 1 false");
    server.stop();
    home.json(&["keys", "backup", "kept"]);
    // What is not needed may go; what rows need may not.
    std::fs::remove_file(home.path("data/keys/supply/kek-1")).unwrap();
    assert_eq!(home.serve_with(home.command(&quiet)).stop(), 0);
    std::fs::remove_file(home.path("data/keys/supply/kek-2")).unwrap();
    std::fs::copy(home.path("kept/supply/kek-1"), home.path("data/keys/supply/kek-1")).unwrap();
    let ran = home.run(&quiet);
    assert!(ran.code() == 1 && ran.error().contains("keys/supply/kek-2"), "{}", ran.all());
}

#[test]
fn a_vault_without_its_token_stops_the_start_and_one_out_of_reach_does_not() {
    let home = home();
    let vault = [
        "supply.kms.kind=vault",
        "supply.kms.address=http://127.0.0.1:9",
        "supply.kms.token={env=\"VAULT\"}",
    ];
    let serve = |settings: &[&str]| {
        let sets: Vec<&str> = settings.iter().flat_map(|setting| ["--set", *setting]).collect();
        home.command(&[&["serve", "--listen", "127.0.0.1:0"], &sets[..]].concat())
    };
    let told = home.run(&["serve", "--set", vault[0]]);
    assert!(told.code() == 2 && told.error().contains("supply.kms.token"), "{}", told.all());
    let sets: Vec<&str> = vault.iter().flat_map(|setting| ["--set", *setting]).collect();
    let told = home.run(&[&["serve", "--listen", "127.0.0.1:0"], &sets[..]].concat());
    assert!(
        told.code() != 0 && told.error().contains("supply.kms.token: the variable VAULT"),
        "{}",
        told.all()
    );
    let admin = admin(&home);
    let mut command = serve(&vault);
    command.env("VAULT", "hvs.0123456789abcdef");
    let server = home.serve_with(command);
    let supplier = json!({ "code": "one", "name": "One", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000000" });
    let (status, answer) =
        call(&server, ("POST", "/api/v1/platform/suppliers"), (&admin, "1"), &supplier.to_string());
    assert_eq!((status, &answer["error"]["code"]), (503, &json!("SUP_COM_5031")), "{answer}");
    assert_eq!(server.stop(), 0);
}

/// A token of this issuer, of an hour.
fn minted(issuer: &Issuer, (tenant_id, operator_id): (i64, i64), user_type: UserType) -> String {
    let (role, scopes) = match user_type {
        UserType::Platform => (Role::Admin, vec!["*"]),
        _ => (Role::Owner, vec!["supply:account:read"]),
    };
    let (scopes, ttl) = (Scopes::new(scopes).unwrap(), Duration::from_secs(3600));
    let grant = Grant { operator_id, tenant_id, role, user_type, scopes, ttl };
    issuer.mint(&grant, SystemClock.now(), &OsRandom).unwrap().token.expose().to_owned()
}

#[test]
fn tokens_of_an_issuer_outside_open_what_they_say_and_strangers_nothing() {
    let random = CountingRandom::default();
    let issuer = || {
        let key = IssuerKey::random(&random).unwrap();
        Issuer::new("https://id.example.com", "supply", vec![key]).unwrap()
    };
    let (issuer, stranger) = (issuer(), issuer());
    let home = home();
    let set = format!(
        "supply.issuer={{ name = \"https://id.example.com\", jwks_url = \"{}\" }}",
        publisher(issuer.jwks())
    );
    let server = home.serve_with(home.command(&["serve", "--listen", "127.0.0.1:0", "--set", &set]));
    let staff = home.run(&["supply", "admin", "ann", "--json"]);
    let staff: Json = serde_json::from_str(&staff.out()).unwrap();
    let admin = minted(&issuer, (1, staff["user_id"].as_i64().unwrap()), UserType::Platform);
    let supplier = json!({ "code": "one", "name": "One", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000000" });
    let made = done(&server, ("POST", "/api/v1/platform/suppliers"), (&admin, "1"), &supplier);
    let who = (made["tenant_id"].as_i64().unwrap(), made["operator_id"].as_i64().unwrap());
    let token = minted(&issuer, who, UserType::Supply);
    let accounts = ("GET", "/api/v1/supply/accounts");
    assert_eq!(call(&server, accounts, (&token, "2"), "").0, 200);
    let asked = ("POST", "/api/v1/platform/tokens/introspect");
    let said = done(&server, asked, (&admin, "3"), &json!({ "token": token }));
    assert_eq!((&said["active"], &said["tenant_id"]), (&json!(true), &json!(who.0)), "{said}");
    let forged = minted(&stranger, who, UserType::Supply);
    assert_eq!(call(&server, accounts, (&forged, "4"), "").0, 401);
}
