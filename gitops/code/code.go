// Package code has the stable codes of the problems that reading a repository reports. docs/errors.md has a section for each one. A code
// keeps its meaning: programs, suppressions and searches depend on it. A message may change.
package code

// Code names a kind of problem. It is a word in lower case with dashes.
type Code string

// Problems of a repository and of its files and folders.
const (
	// NoLayout: there is no kubeop.yaml.
	NoLayout Code = "no-layout"
	// UnknownLayout: kubeop.yaml names a layout that this operator does not read.
	UnknownLayout Code = "unknown-layout"
	// MisplacedFile: nothing is read from where the file is.
	MisplacedFile Code = "misplaced-file"
	// MisnamedFile: the file is in the right folder, and its name is nearly right.
	MisnamedFile Code = "misnamed-file"
	// MissingDeclaration: a folder of a tenant, a project or an app lacks the file that declares it.
	MissingDeclaration Code = "missing-declaration"
	// InvalidFolderName: no object can have the name of the folder.
	InvalidFolderName Code = "invalid-folder-name"
	// UnusableFile: a symlink, a submodule, or a name that no file can have.
	UnusableFile Code = "unusable-file"
	// ProjectsTwice: a tenant has projects in the platform repository, and a repository of its own.
	ProjectsTwice Code = "projects-twice"
	// OverLimit: the repository, or the files of a tenant, are over a limit.
	OverLimit Code = "over-limit"
	// OverBudget: the quota of a project does not fit into the budget of its tenant.
	OverBudget Code = "over-budget"
	// Unreadable: the file could not be read from the repository. It is read again.
	Unreadable Code = "unreadable"
)

// Problems of a file as YAML.
const (
	// EmptyFile: there is no document in the file.
	EmptyFile Code = "empty-file"
	// BrokenYAML: the file is not YAML.
	BrokenYAML Code = "broken-yaml"
	// SeveralDocuments: the file has more than one document.
	SeveralDocuments Code = "several-documents"
	// NotAnObject: the file is a list or a value.
	NotAnObject Code = "not-an-object"
	// DuplicateKey: a key is written twice.
	DuplicateKey Code = "duplicate-key"
	// UnsupportedYAML: the file has a value or key of YAML that JSON does not have.
	UnsupportedYAML Code = "unsupported-yaml"
	// FileTooLarge: the file, or what its aliases stand for, is too large or nested too deep.
	FileTooLarge Code = "file-too-large"
	// MoreProblems: the file has more problems than are reported.
	MoreProblems Code = "more-problems"
)

// Problems of an object.
const (
	// WrongKind: the path requires another kind.
	WrongKind Code = "wrong-kind"
	// WrongVersion: the apiVersion is not that of kubeop.
	WrongVersion Code = "wrong-version"
	// OtherTool: the object is one of Flux or Argo CD.
	OtherTool Code = "other-tool"
	// NameMismatch: metadata.name differs from the name of the folder.
	NameMismatch Code = "name-mismatch"
	// ReservedField: kubeop or the path decides the field.
	ReservedField Code = "reserved-field"
	// InvalidLabel: a label or annotation is not well formed.
	InvalidLabel Code = "invalid-label"
	// UnknownField: the kind has no such field.
	UnknownField Code = "unknown-field"
	// RequiredField: a field is missing.
	RequiredField Code = "required-field"
	// WrongType: the value is of another type than the field.
	WrongType Code = "wrong-type"
	// UnknownValue: the value is not one of those that the field may have.
	UnknownValue Code = "unknown-value"
	// DuplicateItem: two items of a list have the same key or value.
	DuplicateItem Code = "duplicate-item"
	// InvalidValue: the value has not the form or the size that the field requires.
	InvalidValue Code = "invalid-value"
	// BrokenRule: a rule about several fields, or about the range of a value, is broken.
	BrokenRule Code = "broken-rule"
	// InvalidImage: no container runtime can parse the image reference.
	InvalidImage Code = "invalid-image"
	// InvalidExpression: a CEL expression cannot be compiled.
	InvalidExpression Code = "invalid-expression"
	// InvalidFreeze: a freeze window has no start, time zone or duration that can be evaluated.
	InvalidFreeze Code = "invalid-freeze"
	// InvalidBudget: the budget of a tenant has a negative amount, or names what the quotas of projects do not count.
	InvalidBudget Code = "invalid-budget"
	// InvalidPolicy: an amount of a policy is negative, or contradicts another one of the same policy.
	InvalidPolicy Code = "invalid-policy"
	// WrongScope: the field is only for projects of the platform, or only for those of tenants.
	WrongScope Code = "wrong-scope"
	// SecretDependency: an app depends on a Secret.
	SecretDependency Code = "secret-dependency"
	// DependencyCycle: an app depends on itself.
	DependencyCycle Code = "dependency-cycle"
	// MissingFile: a file or folder that the spec names is not beside app.yaml.
	MissingFile Code = "missing-file"
	// WrongPath: the spec names a file where a folder belongs, or a folder where a file belongs.
	WrongPath Code = "wrong-path"
	// UnknownPolicy: a tenant names a policy that no file declares.
	UnknownPolicy Code = "unknown-policy"
	// ContradictingPolicies: policies of one tenant together allow nothing of something, or do not agree about what they set.
	ContradictingPolicies Code = "contradicting-policies"
	// UnknownPriceList: a tenant names a price list that no file declares.
	UnknownPriceList Code = "unknown-price-list"
	// SecondDefault: two price lists, or two clusters, are the default.
	SecondDefault Code = "second-default"
	// UnknownCluster: a tenant or a project names a cluster that no file declares.
	UnknownCluster Code = "unknown-cluster"
	// ClusterNotAllowed: a project names a cluster that its tenant may not use.
	ClusterNotAllowed Code = "cluster-not-allowed"
	// UndecidedPlacement: it is not known which projects the operator takes, so nothing of the commit is used.
	UndecidedPlacement Code = "undecided-placement"
	// UnknownTenant: a registry names a tenant that no folder declares.
	UnknownTenant Code = "unknown-tenant"
	// SecondRegistry: two registries give credentials for the same host to one tenant.
	SecondRegistry Code = "second-registry"
	// OverlappingDomain: a domain of a tenant is one of another tenant, or is below or above one.
	OverlappingDomain Code = "overlapping-domain"
	// WriteRefused: the file is valid, and the object could not be written to the cluster.
	WriteRefused Code = "write-refused"
	// RenderFailed: the app is valid, and its files, its chart or its settings render to no valid objects. Only kubeop validate reports it;
	// in a cluster, it is a reason of the App.
	RenderFailed Code = "render-failed"
	// NotAllowed: the app renders to objects that it may not have. Only kubeop validate reports it; in a cluster, it is a reason of the App.
	NotAllowed Code = "not-allowed"
)
