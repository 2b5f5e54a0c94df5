//! Organisations of the account, and which of them pays.

use crate::{
    AsyncSandboxer,
    error::Result,
    models::{
        ActiveOrg, ActiveOrgUpdateRequest, CreateOrganizationRequest, CreateOrganizationResponse,
        OrgListResponse, OrgMembersResponse,
    },
    sandboxer::Api,
    wire::Patch,
};

/// The organisations of the account; comes from
/// [`AsyncSandboxer::organizations`](crate::AsyncSandboxer::organizations).
///
/// An organisation pays for the sandboxes that its members create for it. It is named by its id, its name or
/// `personal`.
#[derive(Clone, Debug)]
pub struct AsyncOrganizations {
    api: Api,
}

impl AsyncSandboxer {
    /// The organisations of the account, and which of them pays.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let list = client.organizations().list().await?;
    /// let active = list.orgs.iter().find(|org| org.active);
    /// assert_eq!(active.map(|org| org.id.as_str()), Some("personal"));
    /// # Ok(()) }
    /// ```
    pub fn organizations(&self) -> AsyncOrganizations {
        AsyncOrganizations { api: self.api().clone() }
    }
}

impl AsyncOrganizations {
    /// Lists what can pay: the personal account first, then every organisation.
    ///
    /// `active_wallet_chosen` is false for as long as none was ever chosen with [`set_active`](Self::set_active).
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let list = client.organizations().list().await?;
    /// let active = list.orgs.iter().find(|org| org.active);
    /// assert_eq!(active.map(|org| org.id.as_str()), Some("personal"));
    /// # Ok(()) }
    /// ```
    pub async fn list(&self) -> Result<OrgListResponse> {
        self.api.list_organizations().await
    }

    /// Creates an organisation, whose owner the caller becomes.
    ///
    /// It needs the action `account.admin`. A call that is cut off is not repeated, since it may have created it:
    /// look with [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, when `name` is not 1 to 100
    /// characters; `org_limit` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let created = client.organizations().create("acme").await?;
    /// assert_eq!(created.org.map(|org| org.name).as_deref(), Some("acme"));
    /// # Ok(()) }
    /// ```
    pub async fn create(&self, name: &str) -> Result<CreateOrganizationResponse> {
        self.api.create_organization(CreateOrganizationRequest::new(name)).await
    }

    /// Lists the members of an organisation, and who is invited.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when the key sees no organisation of that id; and the failures of
    /// any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let org_id = client.organizations().create("acme").await?.org.expect("the new one").id;
    /// let people = client.organizations().members(&org_id).await?;
    /// assert_eq!((people.members.len(), people.invites.len()), (1, 0));
    /// # Ok(()) }
    /// ```
    pub async fn members(&self, org_id: &str) -> Result<OrgMembersResponse> {
        self.api.org_members(org_id).await
    }

    /// Chooses what pays for sandboxes that name no organisation, on every client of the account; `None` is the
    /// personal account.
    ///
    /// Sandboxes that exist keep what they have.
    ///
    /// # Errors
    ///
    /// `not_org_member` and `ambiguous_org`, a name that several organisations have, of the service; and the
    /// failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # client.organizations().create("acme").await?;
    /// let active = client.organizations().set_active(Some("acme")).await?;
    /// assert_eq!(active.name, "acme");
    /// # Ok(()) }
    /// ```
    pub async fn set_active(&self, org: Option<&str>) -> Result<ActiveOrg> {
        let org = Patch::from(org.map(str::to_owned));
        Ok(self.api.set_active_organization(ActiveOrgUpdateRequest::new(org)).await?.active)
    }
}
