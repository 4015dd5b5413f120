//! Credentials that nobody has: the right shape, letters by counting. Put together while the test runs, so that
//! no scanner of repositories finds one in this file.

use std::sync::LazyLock;

use guard::{Guard, Scanner, TOKEN_EXCEPTIONS};

pub(crate) const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(crate) const HEX: &str = "0123456789abcdef";
pub(crate) const BASE32: &str = "ABCDEFGHJKLMNPQRSTVWXYZ0123456789";
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static STANDARD: LazyLock<Scanner> = LazyLock::new(|| Scanner::standard().unwrap());

pub(crate) fn scanner() -> &'static Scanner {
    &STANDARD
}

pub(crate) fn new_guard() -> Guard {
    Guard::new(Scanner::standard().unwrap(), TOKEN_EXCEPTIONS.to_vec(), &[42; 32])
}

/// `length` letters that look mixed.
pub(crate) fn letters(alphabet: &str, length: usize, seed: u32) -> String {
    let alphabet = alphabet.as_bytes();
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(alphabet[(state >> 16) as usize % alphabet.len()])
        })
        .collect()
}

fn mixed(length: u8) -> String {
    letters(BASE62, length.into(), length.into())
}

fn jwt() -> String {
    // The parts begin with {"alg" and {"iss" as all tokens do.
    format!("eyJ{}.eyJ{}.{}", mixed(33), mixed(90), mixed(43))
}

/// One credential or more for every rule.
pub(crate) fn credentials() -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("anthropic", format!("sk-ant-{}-{}", "api03", mixed(95))),
        ("anthropic", format!("sk-ant-{}-{}_{}", "oat01", mixed(40), mixed(30))),
        ("openai_project", format!("sk-{}-{}", "proj", mixed(48))),
        ("openai_project", format!("sk-{}-{}-{}", "svcacct", mixed(20), mixed(20))),
        ("openai_project", format!("sk-{}-{}", "admin", mixed(20))),
        ("openai_project", format!("sk-{}-{}", "None", mixed(32))),
        ("openai_marker", format!("sk-{}_{}{}{}", mixed(9), mixed(5), "T3BlbkFJ", mixed(20))),
        ("sk_generic", format!("sk-{}", mixed(48))),
        ("sk_generic", format!("sk-{}", mixed(20))),
        ("openai_session", format!("sess-{}", mixed(40))),
        ("google_key", format!("{}{}", "AIza", mixed(35))),
        ("google_newkey", format!("{}.{}", "AQ", mixed(40))),
        ("google_access", format!("{}.{}", "ya29", mixed(60))),
        ("google_refresh", format!("{}{}", "1//0", mixed(60))),
        ("google_secret", format!("{}-{}", "GOCSPX", mixed(28))),
        ("baidu_v3", format!("bce-v3/{}-{}/{}", "ALTAK", mixed(21), letters(HEX, 40, 1))),
        ("baidu_v3", format!("bce-v3/{}-{}/{}", "ALTAKSP", mixed(21), letters(HEX, 40, 2))),
        ("baidu_ak", format!("{}{}", "ALTAK", mixed(22))),
        ("baidu_token", format!("24.{}.{}.{}", letters(HEX, 32, 3), "2592000", "1712345678")),
        (
            "baidu_token",
            format!(
                "25.{}.{}.{}.{}-{}",
                letters(HEX, 32, 4),
                "315360000".get(..8).unwrap(),
                "2012345678",
                "282335",
                "12345678"
            ),
        ),
        ("xfyun_pair", format!("{}:{}", letters(HEX, 32, 5), mixed(32))),
        ("xfyun_password", format!("{}:{}", letters(LETTERS, 20, 6), letters(LETTERS, 20, 7))),
        ("tencent_id", format!("{}{}", "AKID", mixed(32))),
        ("jwt", jwt()),
        ("platform_key", format!("lgw_{}", mixed(32))),
        ("private_key", format!("-----BEGIN {}PRIVATE KEY-----", "RSA ")),
        ("private_key", format!("-----BEGIN {}PRIVATE KEY-----\n{}\n", "", mixed(64))),
    ];
    for name in [
        "api_key",
        "apikey",
        "API-KEY",
        "api_secret",
        "secret",
        "secret_key",
        "secret_id",
        "access_token",
        "refresh-token",
        "client_secret",
        "credential",
        "credential_input",
        "x-api-key",
        "Authorization",
    ] {
        all.push((
            "context",
            format!("{name}{}{}", ["=", ": ", "\":\"", "' : '"][name.len() % 4], mixed(24)),
        ));
    }
    all.push(("context", format!("authorization: Bearer {}", mixed(16))));
    all
}
