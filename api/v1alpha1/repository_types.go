package v1alpha1

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RepositorySpec defines which Git repository to watch, and with which credentials.
type RepositorySpec struct {
	// URL to fetch from.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|ssh)://[^\s]+$`
	URL string `json:"url"`
	// Ref to follow. Default: the default branch of the remote repository.
	Ref *sourcev1.GitRepositoryRef `json:"ref,omitempty"`
	// Path of the folder that holds kubeop.yaml, relative to the root. Default: the root.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the repository"
	Path string `json:"path,omitempty"`
	// Tenant that owns the repository; it has the same name. Only the repository named platform has no tenant, and only it may declare
	// Tenants.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	Tenant string `json:"tenant,omitempty"`
	// SecretRef names a Secret in the operator's namespace with the credentials: username and password, bearerToken, identity and
	// known_hosts (SSH), or githubAppID, githubAppInstallationID and githubAppPrivateKey. ca.crt adds a certificate authority.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// HookSecretRef names a Secret in the operator's namespace. Its key "token" signs calls of POST /hook/<name>. Without it the hook
	// rejects all calls, only polling finds pushes, and the condition HookClosed says so.
	HookSecretRef *LocalSecretReference `json:"hookSecretRef,omitempty"`
	// History defines which commits may follow the last accepted commit: FastForward (its descendants) or Any. Other commits are held
	// until the annotation paas.kubeop.io/confirm-history names them. Default FastForward.
	// +kubebuilder:default=FastForward
	History HistoryPolicy `json:"history,omitempty"`
	// Verify accepts only commits or tags that are signed by one of the given keys. The Secret is in the operator's namespace.
	Verify *GitVerification `json:"verify,omitempty"`
	// CommitStatus shows at the Git host whether a commit is applied and healthy. Default: nothing is reported.
	CommitStatus *CommitStatus `json:"commitStatus,omitempty"`
	// Previews defines what the pull requests into the followed branch get: None, or Plan, a comment that says what their commits would
	// change. Those from forks get none. Default None.
	// +kubebuilder:default=None
	Previews PreviewPolicy `json:"previews,omitempty"`
	// Timeout of one fetch, from 1s to 1h. Default 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	// +kubebuilder:default="5m"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	Polling `json:",inline"`
}

// HistoryPolicy defines which commits may follow the last accepted commit.
// +kubebuilder:validation:Enum=FastForward;Any
type HistoryPolicy string

const (
	// HistoryFastForward accepts descendants of the last accepted commit.
	HistoryFastForward HistoryPolicy = "FastForward"
	// HistoryAny accepts every commit.
	HistoryAny HistoryPolicy = "Any"
)

// PreviewPolicy defines what pull requests get.
// +kubebuilder:validation:Enum=None;Plan
type PreviewPolicy string

const (
	// PreviewsNone leaves pull requests alone.
	PreviewsNone PreviewPolicy = "None"
	// PreviewsPlan writes a plan to each pull request.
	PreviewsPlan PreviewPolicy = "Plan"
)

// RepositoryStatus reports the last commits and their results.
type RepositoryStatus struct {
	ReconcileStatus `json:",inline"`

	// LastAttemptedRevision is the newest commit that was accepted, as "branch@sha1:<commit>".
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// Source is the URL and the ref from which LastAttemptedRevision was read. The history of a new commit is checked only while they
	// stay the same.
	Source string `json:"source,omitempty"`
	// HeldRevision is a newer commit that is not accepted, because of its history, its signature or a freeze. It is empty if there is none.
	HeldRevision string `json:"heldRevision,omitempty"`
	// HeldUntil is the end of the freeze that holds HeldRevision; absent if it is held for another reason.
	HeldUntil *metav1.Time `json:"heldUntil,omitempty"`
	// Cluster is the name of this cluster in the configuration of its operator, which takes the projects of this cluster only; empty without a name.
	Cluster string `json:"cluster,omitempty"`
	// ProjectsElsewhere counts the projects that LastAttemptedRevision places on other clusters.
	ProjectsElsewhere int `json:"projectsElsewhere,omitempty"`
	// LastAppliedRevision is the newest commit that was valid and applied completely.
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// Problems are the errors of the last attempted commit, as "file:line:column: why [code]". At most 20.
	// +listType=atomic
	Problems []string `json:"problems,omitempty"`
	// Held are the deletions that wait for a confirmation, as "<kind> <namespace>/<name>: what would be deleted". Deletions of data come
	// first. At most 50. The condition Ready says who may confirm them, and how.
	// +listType=atomic
	Held []string `json:"held,omitempty"`
	// HeldToken is the value that the annotation paas.kubeop.io/confirm-deletions needs to confirm the deletions. It is valid for this
	// commit and this list only.
	HeldToken string `json:"heldToken,omitempty"`
	// AppliedSource is the source of the last commit that was applied completely: the URL, then "#" and the path if there is one.
	AppliedSource string `json:"appliedSource,omitempty"`
	// CommitStatuses are the last statuses that the Git host accepted, of the newest commit and of those before it that are still in
	// progress. At most 5.
	// +listType=atomic
	CommitStatuses []ReportedStatus `json:"commitStatuses,omitempty"`
	// Plans are the open pull requests into the followed branch, with what spec.previews Plan wrote to them. At most 50.
	// +listType=map
	// +listMapKey=number
	Plans []PullRequestPlan `json:"plans,omitempty"`
	// Previews are the branches, and the open pull requests, that match spec.previews of the projects. At most 50.
	Previews []PreviewStatus `json:"previews,omitempty"`
}

// PreviewStatus is a branch, or an open pull request, that matches spec.previews of a project.
type PreviewStatus struct {
	// Project is the preview; PreviewOf is the project that it is of.
	Project   string `json:"project"`
	PreviewOf string `json:"previewOf"`
	// Branch is the name of the branch, and Revision the commit that the preview has, as "branch@sha1:<commit>".
	Branch   string `json:"branch"`
	Revision string `json:"revision,omitempty"`
	// PullRequest is the number of the pull request of the branch.
	PullRequest int64 `json:"pullRequest,omitempty"`
	// Message says why there is no preview, or what is wrong with the branch, as "file:line:column: why".
	Message string `json:"message,omitempty"`
}

// PullRequestPlan is an open pull request.
type PullRequestPlan struct {
	// Number of the pull request.
	Number int `json:"number"`
	// Revision is the commit whose plan is written to the pull request, as "branch@sha1:<commit>"; absent if there is none.
	Revision string `json:"revision,omitempty"`
	// Message counts what the commit would change, or says why there is no plan.
	Message string `json:"message,omitempty"`
}

// Repository is a watched Git repository of the platform or of one tenant.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=repo,categories=kubeop
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.lastAppliedRevision`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Hook closed",type=string,JSONPath=`.status.conditions[?(@.type=="HookClosed")].reason`,priority=1
// +kubebuilder:printcolumn:name="Suspended",type=string,JSONPath=`.status.conditions[?(@.type=="Suspended")].status`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z][a-z0-9]{0,19}$')",message="name must be a letter followed by at most 19 letters or digits"
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'platform' ? !has(self.spec.tenant) : has(self.spec.tenant) && self.spec.tenant == self.metadata.name",message="the repository named platform has no spec.tenant; every other one has spec.tenant equal to its name"
type Repository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RepositorySpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +structType=atomic
	Status RepositoryStatus `json:"status,omitempty"`
}

// RepositoryList is a list of Repositories.
// +kubebuilder:object:root=true
type RepositoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Repository `json:"items"`
}

// Notification defines a receiver of messages about failures and deliveries of a tenant's apps. The names of the fields, the types and the keys of the
// Secret are those of Flux's Provider and Alert.
type Notification struct {
	// Name of the receiver, for messages about it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Type of the receiver: slack, msteams, generic (JSON), generic-hmac (JSON with a signature) or alertmanager.
	// +kubebuilder:validation:Enum=slack;msteams;generic;generic-hmac;alertmanager
	Type string `json:"type"`
	// SecretRef names a Secret in the operator's namespace with the address, the URL of the webhook. Its other keys are optional: token
	// signs what generic-hmac sends, and is a bearer token for other types; username and password; ca.crt.
	SecretRef LocalSecretReference `json:"secretRef"`
	// EventSeverity is the lowest severity: info for failures and deliveries, error for failures alone. Default info.
	// +kubebuilder:validation:Enum=info;error
	// +kubebuilder:default=info
	EventSeverity string `json:"eventSeverity,omitempty"`
	// Apps are patterns of the apps, as "<project>/<app>", in which * stands for any part of a name. Default: all apps, and the tenant's
	// repository.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*][-a-z0-9*]*/[a-z0-9*][-a-z0-9*]*$`
	// +listType=set
	Apps []string `json:"apps,omitempty"`
}

// CommitStatus defines how the Git host shows beside each commit whether it is applied and healthy. The names of the fields are those of
// Flux's Provider.
type CommitStatus struct {
	// Type of the Git host's API; gitea is also Forgejo's. Default: by the name of the host in url.
	// +kubebuilder:validation:Enum=github;gitlab;gitea;bitbucket;bitbucketserver
	Type string `json:"type,omitempty"`
	// Address of the Git host, if its API is at another host than url, or below a path. Default: the host of url.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	Address string `json:"address,omitempty"`
	// SecretRef names a Secret in the operator's namespace with a token for the API: bearerToken, or username and password. Default: the
	// secretRef of the repository.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Context is the name of the status. Clusters that deliver the same repository need different ones. Default kubeop/<tenant>.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9/._ -]*[A-Za-z0-9])?$`
	Context string `json:"context,omitempty"`
	// TargetURL is the link of the status; "{commit}" in it stands for the hash of the commit. Default: none.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	TargetURL string `json:"targetURL,omitempty"`
}

// ReportedStatus is a status that the Git host shows for a commit.
type ReportedStatus struct {
	// Commit is the hash.
	Commit string `json:"commit"`
	// State is pending, success, failure or canceled.
	State string `json:"state"`
	// Description is the text beside it.
	Description string `json:"description,omitempty"`
}
