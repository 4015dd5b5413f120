//! Who calls, and whether that suffices: role, scope, kind of user (domain specification, section 3.2).
//!
//! Not here: the tenant. Every query filters by it, and an object of another tenant is one that does not
//! exist (404), so a foreign object can't be told from none.

use kernel::Digest;

use crate::claims::Claims;
use crate::refusal::Refusal;
use crate::scope::{self, Scopes};

/// What a person may do at most, whatever the scopes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Manages accounts, packages, settlements.
    Owner,
    /// Reads.
    Viewer,
    /// Risk and audit; platform staff only.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Owner, Self::Viewer, Self::Admin];

    /// The word in the claim `role`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Viewer => "viewer",
            Self::Admin => "admin",
        }
    }

    /// The role of this word.
    #[must_use]
    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// On which side of the market a person stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserType {
    /// A supplier's people.
    Supply,
    /// A buyer's people.
    Consumer,
    /// The platform's staff and services.
    Platform,
}

impl UserType {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Supply, Self::Consumer, Self::Platform];

    /// The word in the claim `user_type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Supply => "supply",
            Self::Consumer => "consumer",
            Self::Platform => "platform",
        }
    }

    /// The kind of this word.
    #[must_use]
    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whose the scopes of a family are; `None` for a family that nobody knows, which so fits nobody.
    fn of_family(scope: &str) -> Option<Self> {
        match scope.split(':').next() {
            Some("supply" | "billing") => Some(Self::Supply),
            Some("consumer" | "router") => Some(Self::Consumer),
            Some("platform") => Some(Self::Platform),
            _ => None,
        }
    }
}

/// Who calls, proven by a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// `core_tenants.id`; positive.
    pub tenant_id: i64,
    /// `iam_users.id` of the person who acts; positive. Not the supplier's `user_id`.
    pub operator_id: i64,
    /// What the person may do at most.
    pub role: Role,
    /// On which side the person stands.
    pub user_type: UserType,
    /// What the token opens.
    pub scopes: Scopes,
    /// The token's id.
    pub jti: String,
    /// What the token service keeps of the token.
    pub fingerprint: Digest,
}

impl Principal {
    /// From what was verified.
    #[must_use]
    pub fn new(claims: &Claims, fingerprint: Digest) -> Self {
        Self {
            tenant_id: claims.tenant_id,
            operator_id: claims.operator_id,
            role: claims.role,
            user_type: claims.user_type,
            scopes: claims.scopes.clone(),
            jti: claims.jti.clone(),
            fingerprint,
        }
    }

    /// Whether the platform's staff may hand these scopes out to somebody of this kind: to staff and services of the
    /// platform what they hold themselves, to suppliers' and buyers' people also what all of `platform:*` stands for.
    #[must_use]
    pub fn may_grant(&self, scopes: &Scopes, to: UserType) -> bool {
        let all = to != UserType::Platform && self.scopes.cover(scope::ALL_PLATFORM, self.user_type);
        all || scopes.iter().all(|scope| self.scopes.cover(scope, self.user_type))
    }

    /// Whether this is platform staff.
    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin && self.user_type == UserType::Platform
    }
}

/// Whether a request changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// It doesn't.
    Read,
    /// It does.
    Write,
}

/// What a request needs.
///
/// ```
/// use auth::{Need, scope};
///
/// const WITHDRAW: Need = Need::write(scope::SETTLEMENT_WITHDRAW);
/// // Suppliers activate their accounts; the platform's risk staff restores disabled ones on the same path.
/// const ACTIVATE: Need = Need::write(scope::ACCOUNT_WRITE).or_admin(scope::PLATFORM_RISK);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    scope: &'static str,
    act: Act,
    admin: Option<&'static str>,
}

impl Need {
    /// A request that changes nothing.
    #[must_use]
    pub const fn read(scope: &'static str) -> Self {
        Self { scope, act: Act::Read, admin: None }
    }

    /// A request that changes something.
    #[must_use]
    pub const fn write(scope: &'static str) -> Self {
        Self { scope, act: Act::Write, admin: None }
    }

    /// For a path that section 6 or 8.5 marks for platform administrators, too: the scope that one of them
    /// needs in place of the other.
    #[must_use]
    pub const fn or_admin(self, scope: &'static str) -> Self {
        Self { admin: Some(scope), ..self }
    }

    /// Whether this caller has it. The role is asked first, then the kind of user, then the scope.
    ///
    /// # Errors
    /// [`Refusal::Role`] (`AUTH_ROLE_DENIED`): a viewer writes, someone beyond the platform is called admin,
    /// or someone who is no admin changes what is the platform's. [`Refusal::UserType`] or
    /// [`Refusal::Scope`] (`AUTH_SCOPE_DENIED`).
    pub fn judge(&self, who: &Principal) -> Result<(), Refusal> {
        let needed = self.admin.filter(|_| who.is_admin()).unwrap_or(self.scope);
        let family = UserType::of_family(needed);
        let role_fits = match (who.role, self.act) {
            (Role::Admin, _) => who.user_type == UserType::Platform,
            (Role::Viewer, act) => act == Act::Read,
            // An owner's ceiling is what belongs to a tenant: staff who change the platform's are admins.
            (Role::Owner, act) => act == Act::Read || who.user_type != UserType::Platform,
        };
        if !role_fits {
            return Err(Refusal::Role);
        }
        // Here a wildcard ends before a supplier's rows: no admin withdraws for A.
        if family != Some(who.user_type) {
            return Err(Refusal::UserType);
        }
        if who.scopes.cover(needed, who.user_type) { Ok(()) } else { Err(Refusal::Scope) }
    }
}
