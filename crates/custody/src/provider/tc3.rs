//! Tencent Cloud's request signature `TC3-HMAC-SHA256` ("Signature v3" of its API 3.0), for POST with JSON.

use kernel::Time;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::material::mac;

/// Part of what is signed, to the letter.
pub(super) const CONTENT_TYPE: &str = "application/json; charset=utf-8";
const SIGNED_HEADERS: &str = "content-type;host;x-tc-action";

/// What is signed.
pub(super) struct Call<'a> {
    pub(super) service: &'a str,
    pub(super) action: &'a str,
    /// As in the `Host` header, with a port that is not the usual one.
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) payload: &'a str,
    pub(super) at: Time,
}

impl Call<'_> {
    /// The `Authorization` header. It holds the id, so it is handled as a secret.
    pub(super) fn authorization(&self, id: &str, key: &SecretString) -> Zeroizing<String> {
        let date = self.date();
        let scope = format!("{date}/{}/tc3_request", self.service);
        let text = format!("TC3-HMAC-SHA256\n{}\n{scope}\n{}", self.at.seconds(), digest(&self.canonical()));
        let secret = Zeroizing::new(format!("TC3{}", key.expose_secret()));
        let dated = Zeroizing::new(mac(secret.as_bytes(), &[date.as_bytes()]));
        let served = Zeroizing::new(mac(dated.as_slice(), &[self.service.as_bytes()]));
        let signing = Zeroizing::new(mac(served.as_slice(), &[b"tc3_request"]));
        let signature = hex::encode(mac(signing.as_slice(), &[text.as_bytes()]));
        Zeroizing::new(format!(
            "TC3-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={SIGNED_HEADERS}, Signature={signature}"
        ))
    }

    fn canonical(&self) -> String {
        let action = self.action.to_lowercase();
        let headers = format!("content-type:{CONTENT_TYPE}\nhost:{}\nx-tc-action:{action}\n", self.host);
        format!("POST\n{}\n\n{headers}\n{SIGNED_HEADERS}\n{}", self.path, digest(self.payload))
    }

    /// The day in UTC.
    fn date(&self) -> String {
        let mut text = self.at.to_rfc3339_seconds();
        text.truncate(text.find('T').unwrap_or(0));
        text
    }
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example_is_reproduced() {
        // https://www.tencentcloud.com/document/api/1005/34678 (2024-11): CVM, DescribeInstances, with a
        // SecretKey of 32 asterisks.
        let call = Call {
            service: "cvm",
            action: "DescribeInstances",
            host: "cvm.tencentcloudapi.com",
            path: "/",
            payload: r#"{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}"#,
            at: Time::from_seconds(1_551_113_065),
        };
        assert_eq!(
            digest(&call.canonical()),
            "7019a55be8395899b900fb5564e4200d984910f34794a27cb3fb7d10ff6a1e84"
        );
        let made = call.authorization("AKID", &SecretString::from("*".repeat(32)));
        let expected = concat!(
            "TC3-HMAC-SHA256 Credential=AKID/2019-02-25/cvm/tc3_request, ",
            "SignedHeaders=content-type;host;x-tc-action, ",
            "Signature=10b1a37a7301a02ca19a647ad722d5e43b4b3cff309d421d85b46093f6ab6c4f",
        );
        assert_eq!(made.as_str(), expected);
    }
}
