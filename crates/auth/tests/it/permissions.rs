//! Section 3.2: the table of business roles, and the rules over every combination.

use auth::{Act, Code, Need, Principal, Refusal, Role, Scopes, UserType, scope};
use kernel::Digest;

const SCOPES: [&str; 16] = [
    scope::ACCOUNT_READ,
    scope::ACCOUNT_WRITE,
    scope::CREDENTIAL_MANAGE,
    scope::PACKAGE_READ,
    scope::PACKAGE_WRITE,
    scope::PACKAGE_PUBLISH,
    scope::PACKAGE_OFFLINE,
    scope::SETTLEMENT_WITHDRAW,
    scope::SUPPLY_AUDIT_READ,
    scope::BILLING_READ,
    scope::PLATFORM_SETTLEMENT,
    scope::PLATFORM_RISK,
    scope::PLATFORM_USAGE,
    scope::PLATFORM_ORDER,
    scope::PLATFORM_AUDIT_READ,
    scope::ROUTER_INVOKE,
];

fn who(role: Role, user_type: UserType, scopes: &[&str]) -> Principal {
    Principal {
        tenant_id: 11,
        operator_id: 31,
        role,
        user_type,
        scopes: Scopes::new(scopes.iter().copied()).unwrap(),
        jti: "t-1".to_owned(),
        fingerprint: Digest::of(b"t-1"),
    }
}

fn need(scope: &'static str) -> Need {
    if scope.ends_with(":read") { Need::read(scope) } else { Need::write(scope) }
}

#[test]
fn business_roles_open_exactly_what_their_line_says() {
    use Role::{Admin, Owner, Viewer};
    use UserType::{Consumer, Platform, Supply};
    // A letter for each of SCOPES in order: passes, lacks the Scope, is of another uSer type, lacks the Role.
    let operator = [
        scope::ACCOUNT_READ,
        scope::ACCOUNT_WRITE,
        scope::PACKAGE_READ,
        scope::PACKAGE_WRITE,
        scope::PACKAGE_PUBLISH,
        scope::PACKAGE_OFFLINE,
        scope::SUPPLY_AUDIT_READ,
    ];
    let finops = [scope::ACCOUNT_READ, scope::PACKAGE_READ, scope::BILLING_READ];
    let viewer = [scope::ACCOUNT_READ, scope::PACKAGE_READ];
    let router = [scope::ROUTER_INVOKE];
    let rows: [(&str, Role, UserType, &[&str], &str); 9] = [
        ("supply_admin", Owner, Supply, &SCOPES[..10], "pppppppppp uuuuu u"),
        ("supply_operator", Owner, Supply, &operator, "ppsppppsps uuuuu u"),
        ("supply_finops", Owner, Supply, &finops, "psspsssssp uuuuu u"),
        ("supply_viewer", Viewer, Supply, &viewer, "prrprrrrss rrrru r"),
        ("consumer owner", Owner, Consumer, &router, "uuuuuuuuuu uuuuu p"),
        ("super_admin", Admin, Platform, &["platform:*"], "uuuuuuuuuu ppppp u"),
        ("everything", Admin, Platform, &["*"], "uuuuuuuuuu ppppp u"),
        ("service that is no admin", Owner, Platform, &["*"], "urrurrrruu rrrrp r"),
        ("admin of a supplier", Admin, Supply, &SCOPES, "rrrrrrrrrr rrrrr r"),
    ];
    for (name, role, user_type, scopes, expected) in rows {
        let who = who(role, user_type, scopes);
        let got: String = SCOPES.iter().map(|scope| letter(need(scope).judge(&who))).collect();
        assert_eq!(got, expected.replace(' ', ""), "{name}");
    }
}

fn letter(judged: Result<(), Refusal>) -> char {
    match judged {
        Ok(()) => 'p',
        Err(Refusal::Scope) => 's',
        Err(Refusal::UserType) => 'u',
        Err(Refusal::Role) => 'r',
        Err(other) => panic!("{other}"),
    }
}

/// Calls with every role, kind of user, held list, needed scope, act and way for administrators.
fn each(mut judge: impl FnMut(&Principal, &'static str, Act, bool, Result<(), Refusal>)) -> usize {
    let singles = SCOPES.iter().map(|scope| vec![*scope]);
    let lists =
        [vec![], vec!["*"], vec!["platform:*"], vec!["supply:*"], vec!["*", "supply:*"], SCOPES.to_vec()];
    let lists: Vec<Vec<&str>> = singles.chain(lists).collect();
    let mut count = 0;
    for (role, user_type, list) in Role::ALL.into_iter().flat_map(|role| {
        UserType::ALL.into_iter().flat_map(move |kind| (0..22).map(move |list| (role, kind, list)))
    }) {
        let who = who(role, user_type, &lists[list]);
        for (scope, act, admin) in SCOPES.into_iter().flat_map(|scope| {
            [
                (scope, Act::Read, false),
                (scope, Act::Read, true),
                (scope, Act::Write, false),
                (scope, Act::Write, true),
            ]
        }) {
            let need = if act == Act::Read { Need::read(scope) } else { Need::write(scope) };
            let need = if admin { need.or_admin(scope::PLATFORM_RISK) } else { need };
            judge(&who, scope, act, admin, need.judge(&who));
            count += 1;
        }
    }
    count
}

#[test]
fn no_combination_breaks_a_rule() {
    let mut passed = 0;
    let count = each(|who, scope, act, or_admin, judged| {
        let text = format!("{who:?} {scope} {act:?} {or_admin} {judged:?}");
        let staff = who.role == Role::Admin && who.user_type == UserType::Platform;
        if judged.is_ok() {
            passed += 1;
            assert!(act == Act::Read || who.role != Role::Viewer, "a viewer writes: {text}");
            assert!(who.role != Role::Admin || staff, "an admin beyond the platform: {text}");
            let suppliers = scope.starts_with("supply:") || scope.starts_with("billing:");
            let as_staff = staff && or_admin;
            assert!(!suppliers || who.user_type == UserType::Supply || as_staff, "a foreign family: {text}");
            assert!(!scope.starts_with("platform:") || who.user_type == UserType::Platform, "{text}");
            let wanted = if as_staff { scope::PLATFORM_RISK } else { scope };
            let exact = who.scopes.iter().any(|held| held == wanted);
            assert!(exact || who.user_type == UserType::Platform, "a wildcard beyond the platform: {text}");
        }
        if let Err(refusal) = judged {
            let code = refusal.code();
            assert!(matches!(code, Code::RoleDenied | Code::ScopeDenied) && code.status() == 403, "{text}");
            let viewer_writes = who.role == Role::Viewer && act == Act::Write;
            assert!(!viewer_writes || code == Code::RoleDenied, "{text}");
        }
    });
    assert_eq!(count, 3 * 3 * 22 * 16 * 4);
    assert_eq!(passed, PASSED, "another number of combinations passes; look which, then write it here");
}

/// How many of the combinations pass, counted by hand: for suppliers ten scopes, two lists that hold each
/// and two ways, times two acts for owners and one for viewers; one scope for consumers in the same way; for
/// the platform five scopes and five lists (three with a wildcard), read by viewers and owners in two ways,
/// by admins in both acts; on paths marked for admins, sixteen scopes, five lists and two acts.
const PASSED: usize = 10 * 2 * 2 * (2 + 1) + 2 * 2 * (2 + 1) + 2 * (5 * 5 * 2) + 5 * 5 * 2 + 16 * 5 * 2;

#[test]
fn an_admin_never_withdraws_for_a_supplier() {
    let withdraw = Need::write(scope::SETTLEMENT_WITHDRAW);
    for scopes in [vec!["*"], vec!["platform:*"], vec!["*", scope::SETTLEMENT_WITHDRAW]] {
        let admin = who(Role::Admin, UserType::Platform, &scopes);
        assert_eq!(withdraw.judge(&admin).map_err(Refusal::code), Err(Code::ScopeDenied), "{scopes:?}");
    }
}

#[test]
fn a_path_marked_for_admins_opens_to_them_with_their_own_scope() {
    let activate = Need::write(scope::ACCOUNT_WRITE).or_admin(scope::PLATFORM_RISK);
    let judge = |role, kind, scopes: &[&str]| activate.judge(&who(role, kind, scopes));
    assert_eq!(judge(Role::Owner, UserType::Supply, &[scope::ACCOUNT_WRITE]), Ok(()));
    assert_eq!(judge(Role::Admin, UserType::Platform, &[scope::PLATFORM_RISK]), Ok(()));
    assert_eq!(judge(Role::Admin, UserType::Platform, &["platform:*"]), Ok(()));
    assert_eq!(judge(Role::Admin, UserType::Platform, &[scope::ACCOUNT_WRITE]), Err(Refusal::Scope));
    assert_eq!(judge(Role::Owner, UserType::Supply, &[scope::PLATFORM_RISK]), Err(Refusal::Scope));
    assert_eq!(judge(Role::Admin, UserType::Supply, &[scope::ACCOUNT_WRITE]), Err(Refusal::Role));
}

#[test]
fn staff_hand_out_what_they_hold_and_those_who_hold_the_platform_what_others_need() {
    use UserType::{Consumer, Platform, Supply};
    let desk = "platform:token:write";
    let may = |held: &[&str], to: UserType, given: &[&str]| {
        who(Role::Admin, Platform, held).may_grant(&Scopes::new(given.iter().copied()).unwrap(), to)
    };
    for (held, to, given, is) in [
        (&[desk][..], Platform, &[desk][..], true),
        (&[desk], Platform, &["*"], false),
        (&[desk], Platform, &["platform:*"], false),
        (&[desk], Platform, &[desk, scope::PLATFORM_RISK], false),
        (&[desk], Supply, &[scope::SETTLEMENT_WITHDRAW], false),
        (&[desk], Consumer, &[scope::ROUTER_INVOKE], false),
        (&[desk, scope::BILLING_READ], Supply, &[scope::BILLING_READ], true),
        (&["platform:*"], Platform, &["*"], false),
        (&["platform:*"], Platform, &["platform:*", scope::PLATFORM_RISK], true),
        (&["platform:*"], Supply, &[scope::SETTLEMENT_WITHDRAW], true),
        (&["platform:*"], Consumer, &[scope::ROUTER_INVOKE], true),
        (&["*"], Platform, &["*"], true),
        (&["*"], Supply, &[scope::BILLING_READ], true),
    ] {
        assert_eq!(may(held, to, given), is, "{held:?} {to:?} {given:?}");
    }
    // A wildcard counts for the platform's only.
    let supplier = who(Role::Owner, Supply, &["*"]);
    assert!(!supplier.may_grant(&Scopes::new([scope::BILLING_READ]).unwrap(), Supply));
}
