"""What no server but the client's own has; here it is refused, each by name."""

from boat_sdk import (
    CreateCredentialProfileRequest,
    CredentialId,
    SavedSnapshotSaveRequest,
    SetCredentialKeyRequest,
    SetCustomApiRequest,
    SetSandboxAiAccessRequest,
    UpdateAiProxyRequest,
    UpdateCredentialProfileRequest,
    UpdateOrganizationRequest,
)

_KEY = CredentialId("openai-api-key")
_SECRET = SetCredentialKeyRequest(value="secret")
_API = SetCustomApiRequest(value="secret", base_url="https://api.example.com")

# The methods, with arguments to try each with; "SANDBOX" stands for the id of a sandbox that is there.
ABSENT = {
    # Credential profiles.
    "create_credential_profile": [CreateCredentialProfileRequest(name="mine")],
    "list_credential_profiles": [],
    "update_credential_profile": ["mine", UpdateCredentialProfileRequest(name="yours")],
    "delete_credential_profile": ["mine"],
    "set_credential_profile_key": ["mine", _KEY, _SECRET],
    "delete_credential_profile_key": ["mine", _KEY],
    "set_credential_profile_custom_api": ["mine", "CRM", _API],
    "delete_credential_profile_custom_api": ["mine", "CRM"],
    "list_credential_accounts": ["mine", _KEY],
    "add_credential_account": ["mine", _KEY, _SECRET],
    "switch_credential_account": ["mine", _KEY, "1"],
    "delete_credential_account": ["mine", _KEY, "1"],
    # The proxy for models, what goes through it, and who may use it.
    "get_ai_proxy": [],
    "update_ai_proxy": [UpdateAiProxyRequest(enabled=True)],
    "get_ai_usage": [],
    "get_sandbox_ai_usage": ["SANDBOX"],
    "set_sandbox_ai_access": ["SANDBOX", SetSandboxAiAccessRequest(blocked=True)],
    # The later name of named snapshots; only their shares have it here.
    "save_saved_snapshot": [SavedSnapshotSaveRequest(sandbox_id="SANDBOX", name="base")],
    "list_saved_snapshots": [],
    "get_saved_snapshot": ["base"],
    "delete_saved_snapshot": ["base"],
    # Organisations.
    "update_organization": ["Acme", UpdateOrganizationRequest(new_sandboxes_private=True)],
    "unshare": ["SANDBOX"],
}
