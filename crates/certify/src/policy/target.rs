//! Which targets a certificate may name. Judged by the address' text; nothing is looked up or fetched.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Longest target, in bytes.
const TARGET_MAX: usize = 2048;

/// The target policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Target {
    /// Key in the sender's metadata that holds the target.
    pub metadata_key: String,
    /// Whether an event without a target fails.
    pub required: bool,
    /// Schemes allowed.
    pub schemes: Vec<String>,
    /// Hosts allowed, with their sub-domains; any when empty.
    pub allow_hosts: Vec<String>,
    /// Hosts refused, with their sub-domains.
    pub deny_hosts: Vec<String>,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            metadata_key: "target".into(),
            required: false,
            schemes: vec!["https".into(), "http".into()],
            allow_hosts: Vec::new(),
            deny_hosts: Vec::new(),
        }
    }
}

impl Target {
    /// The address in its normal form, `None` where the event names none.
    ///
    /// # Errors
    /// The reason, when the policy does not allow the target.
    pub fn judge(&self, target: Option<&str>) -> Result<Option<String>, String> {
        let Some(text) = target else {
            return if self.required {
                Err(format!("metadata {:?} is missing", self.metadata_key))
            } else {
                Ok(None)
            };
        };
        if text.len() > TARGET_MAX {
            return Err(format!("the target is longer than {TARGET_MAX} bytes"));
        }
        let url = Url::parse(text).map_err(|cause| format!("the target is not an address: {cause}"))?;
        if !self.schemes.iter().any(|scheme| scheme == url.scheme()) {
            return Err(format!("the target's scheme {:?} is not allowed", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the target carries a user name or password".into());
        }
        match url.host() {
            None => return Err("the target names no host".into()),
            Some(Host::Ipv4(ip)) if is_private(IpAddr::V4(ip)) => return Err(private(&ip)),
            Some(Host::Ipv6(ip)) if is_private(IpAddr::V6(ip)) => return Err(private(&ip)),
            Some(Host::Ipv4(ip)) => self.listed(&ip.to_string())?,
            Some(Host::Ipv6(ip)) => self.listed(&ip.to_string())?,
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                if is_local_name(name) {
                    return Err(private(&name));
                }
                self.listed(name)?;
            }
        }
        Ok(Some(url.into()))
    }

    fn listed(&self, host: &str) -> Result<(), String> {
        let within = |listed: &String| {
            let listed = listed.trim_start_matches("*.");
            host.eq_ignore_ascii_case(listed)
                || host.to_ascii_lowercase().ends_with(&format!(".{}", listed.to_ascii_lowercase()))
        };
        if self.deny_hosts.iter().any(within) {
            return Err(format!("the target's host {host:?} is refused"));
        }
        if !self.allow_hosts.is_empty() && !self.allow_hosts.iter().any(within) {
            return Err(format!("the target's host {host:?} is not allowed"));
        }
        Ok(())
    }
}

fn private(host: &impl std::fmt::Display) -> String {
    format!("the target's host {:?} is not public", host.to_string())
}

fn is_local_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !name.contains('.')
        || ["localhost", "local", "internal", "lan", "home.arpa", "test", "invalid", "onion"]
            .iter()
            .any(|end| name == *end || name.ends_with(&format!(".{end}")))
}

/// Addresses that are not on the public internet, the embedded IPv4 of an IPv6 address included.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_private_v4(ip),
        IpAddr::V6(ip) => embedded_v4(ip).map_or_else(|| is_private_v6(ip), is_private_v4),
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_broadcast()
        || ip.is_documentation()
        || ip.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    // Only 2000::/3 is handed out, and of it 2001:db8::/32 is documentation.
    let [first, second, ..] = ip.segments();
    first & 0xe000 != 0x2000 || (first == 0x2001 && second == 0x0db8)
}

fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let low = Ipv4Addr::from((u32::from(g) << 16) | u32::from(h));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => Some(low),
        [0x2002, ..] => Some(Ipv4Addr::from((u32::from(b) << 16) | u32::from(c))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_pass_in_their_normal_form() {
        let judge = |text| Target::default().judge(Some(text));
        assert_eq!(judge("HTTPS://Example.com"), Ok(Some("https://example.com/".into())));
        assert_eq!(judge("https://8.8.8.8/x?y"), Ok(Some("https://8.8.8.8/x?y".into())));
        assert!(judge("https://[2606:4700::1111]/").is_ok());
        assert_eq!(Target::default().judge(None), Ok(None));
    }

    #[test]
    fn no_spelling_of_a_private_address_passes() {
        let spellings = [
            "http://127.0.0.1",
            "http://127.1",
            "http://2130706433",
            "http://0x7f.1",
            "http://0",
            "http://localhost",
            "http://localhost.",
            "http://a.localhost",
            "http://intranet",
            "http://x.internal",
            "http://169.254.169.254",
            "http://[::]",
            "http://[::1]",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:7f00:1]",
            "http://[64:ff9b::a9fe:a9fe]",
            "http://[2002:7f00:1::]",
            "http://[fe80::1]",
            "http://[fd00::1]",
            "http://10.0.0.1",
            "http://100.64.0.1",
            "http://192.168.1.1",
            "http://user@example.com",
            "file:///etc/passwd",
            "gopher://example.com",
            "javascript:alert(1)",
            "//example.com",
            "not an address",
            "https://",
        ];
        for text in spellings {
            assert!(Target::default().judge(Some(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn lists_cover_sub_domains_and_nothing_that_only_looks_alike() {
        let target = Target {
            allow_hosts: vec!["example.com".into()],
            deny_hosts: vec!["bad.example.com".into()],
            required: true,
            ..Target::default()
        };
        let allowed = |text| target.judge(Some(text)).is_ok();
        assert!(allowed("https://example.com") && allowed("https://a.example.com"));
        assert!(!allowed("https://notexample.com") && !allowed("https://example.com.evil.io"));
        assert!(!allowed("https://bad.example.com") && !allowed("https://x.bad.example.com"));
        assert!(target.judge(None).is_err());
    }
}
