package podsecurity

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	levels "k8s.io/pod-security-admission/policy"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/policy"
)

// Default is the Pod Security level of a Tenant that sets none.
const Default = string(api.LevelRestricted)

// Rule is the Rule of a policy.Violation that Judge finds.
const Rule = guardrails.PodSecurityRule

// Judge predicts what the API server's Pod Security admission says about pods.
type Judge struct {
	// Level of the namespace.
	Level string
	// Version of the API server, which enforces the checks that it knows.
	Version api.Version
	// Tenant is the tenant whose level an administrator may change. Projects of v1alpha1.PlatformTenant have their own levels.
	Tenant string
	// newest is the version of the API server, if that of the level is an older one.
	newest api.Version
	// requiredBy are the policies that require the level, guardrails.TenantFile for the Tenant. Default: the Tenant.
	requiredBy []string
}

// Under returns the judge of a namespace with these Guardrails: they may require the level, in an older version of the checks. rules is nil for none.
func (j Judge) Under(rules *v1alpha1.GuardrailsSpec) Judge {
	if rules == nil || rules.PodSecurity == nil || rules.PodSecurity.Level != j.Level {
		return j
	}
	j.requiredBy, j.newest, j.Version = rules.PodSecurity.Policies, j.Version, j.version(rules.PodSecurity.Version)
	return j
}

// version returns the version of the checks of a level that is pinned to one: the API server knows none that are newer than itself.
func (j Judge) version(pinned string) api.Version {
	if version, err := api.ParseVersion(pinned); err == nil && version.Older(j.Version) {
		return version
	}
	return j.Version
}

// VersionOf returns the version of the checks that an API server enforces; the latest if its version cannot be read.
func VersionOf(major, minor string) api.Version {
	version, err := api.ParseVersion("v" + major + "." + strings.TrimRight(minor, "+"))
	if err != nil {
		return api.LatestVersion()
	}
	return version
}

const (
	// maxDetail limits what a violation quotes, in characters, and maxText all violations, in bytes: a condition may have 32 KiB.
	maxDetail, maxText = 1 << 10, 16 << 10
	// maxFiles is how many files a message names that require a level.
	maxFiles = 4
)

// Check returns every rule that a pod among the objects breaks, joined; each is a *policy.Violation on its own line. It returns nil if
// there is none.
func (j Judge) Check(objects []*unstructured.Unstructured) error {
	var broken []*policy.Violation
	for _, object := range objects {
		broken = append(broken, j.judge(object)...)
	}
	remedies := policy.Once(broken)
	var found []error
	size, more := 0, 0
	for _, violation := range broken {
		if size += len(violation.Error()); size > maxText {
			more++
			continue
		}
		found = append(found, violation)
	}
	if more > 0 {
		found = append(found, &policy.Violation{Object: fmt.Sprintf("%d rules more", more), Rule: Rule, Why: "are broken by these and other objects"})
	}
	for _, remedy := range remedies {
		found = append(found, remedy)
	}
	return errors.Join(found...)
}

// judge says for each broken rule how the object's pod breaks it, and what the author can do.
func (j Judge) judge(object *unstructured.Unstructured) (broken []*policy.Violation) {
	p := podOf(object)
	if p == nil || j.Level != string(api.LevelBaseline) && j.Level != string(api.LevelRestricted) {
		return nil
	}
	spec, metadata := &corev1.PodSpec{}, &metav1.ObjectMeta{}
	converter := runtime.DefaultUnstructuredConverter
	if converter.FromUnstructured(p.Spec, spec) != nil || converter.FromUnstructured(p.Metadata, metadata) != nil {
		return nil // The API server cannot decode the pod either, and refuses it.
	}
	inForce := checksOf(j.Version)
	results, overridden := map[levels.CheckID]levels.CheckResult{}, map[levels.CheckID]bool{}
	for _, c := range inForce {
		results[c.id] = c.CheckPod(metadata, spec)
		for _, id := range c.OverrideCheckIDs {
			overridden[id] = j.Level == string(api.LevelRestricted)
		}
	}
	for _, c := range inForce {
		if results[c.id].Allowed || overridden[c.id] || c.level == api.LevelRestricted && j.Level != string(api.LevelRestricted) {
			continue
		}
		atBaseline := c.level == api.LevelRestricted
		for _, id := range c.OverrideCheckIDs {
			if under, ok := results[id]; ok && !under.Allowed {
				atBaseline = false
			}
		}
		violation := j.violation(c.id, results[c.id], p, atBaseline)
		violation.Object = policy.NameOf(object)
		broken = append(broken, violation)
	}
	return broken
}

// check is one of Kubernetes' checks, in the version that the API server enforces.
type check struct {
	id    levels.CheckID
	level api.Level
	levels.VersionedCheck
}

var checks = levels.DefaultChecks()

// checksOf returns the checks that an API server of a version enforces. A check of restricted may override checks of baseline.
func checksOf(version api.Version) []check {
	var inForce []check
	for _, c := range checks {
		now := check{id: c.ID, level: c.Level}
		for _, versioned := range c.Versions {
			if !version.Older(versioned.MinimumVersion) {
				now.VersionedCheck = versioned
			}
		}
		if now.CheckPod != nil {
			inForce = append(inForce, now)
		}
	}
	return inForce
}

func (j Judge) violation(id levels.CheckID, result levels.CheckResult, p *pod, atBaseline bool) *policy.Violation {
	detail := result.ForbiddenDetail
	if detail == "" {
		detail = result.ForbiddenReason
	}
	name, _, _ := strings.Cut(string(id), "_")
	rules := "the rules of level baseline"
	if atBaseline {
		rules = "the rules that only level restricted has"
	}
	return &policy.Violation{
		Rule:     Rule,
		Why:      fmt.Sprintf("breaks rule %s of the Pod Security level %s: %s", name, j.Level, few.Line(detail, maxDetail)),
		Remedies: []policy.Remedy{{About: "rule " + name, Text: wayOut(id, p)}, {About: rules, Text: j.otherLevel(atBaseline)}},
	}
}

// otherLevel says who may set which level that admits the pod.
func (j Judge) otherLevel(atBaseline bool) string {
	level := string(api.LevelPrivileged)
	if atBaseline {
		level = string(api.LevelBaseline)
	}
	switch {
	case j.Tenant == v1alpha1.PlatformTenant:
		return "or set spec.namespace.podSecurity: " + level + " in project.yaml, which allows it"
	case atBaseline:
		return "or ask an administrator of the cluster to set " + j.lowered() + " of the platform repository, which allows it"
	}
	return "no level that a Tenant may have allows it, so otherwise " + policy.AskPlatform
}

// lowered says which fields have to be set so that level baseline holds.
func (j Judge) lowered() string {
	files := j.requiredBy
	if len(files) == 0 {
		files = []string{guardrails.TenantFile}
	}
	var fields []string
	for _, file := range files {
		if file == guardrails.TenantFile {
			fields = append(fields, "podSecurity: baseline in tenants/"+j.Tenant+"/"+file)
			continue
		}
		fields = append(fields, "podSecurity: {level: baseline} in policies/"+file+".yaml")
	}
	return strings.Join(few.Of(fields, maxFiles), ", ")
}

// inContainer and inPod are the YAML that satisfies a rule, to be written into a container or into the pod's spec.
var (
	inContainer = map[levels.CheckID]string{
		"allowPrivilegeEscalation": "{allowPrivilegeEscalation: false}",
		"capabilities_restricted":  "{capabilities: {drop: [ALL]}}",
	}
	inPod = map[levels.CheckID]string{
		"runAsNonRoot":              "{runAsNonRoot: true}",
		"seccompProfile_restricted": "{seccompProfile: {type: RuntimeDefault}}",
	}
	// instead says what to do about a field that no YAML can satisfy.
	instead = map[levels.CheckID]string{
		"runAsUser":                  "take runAsUser: 0 out of %s, or write a user there that is not 0",
		"restrictedVolumes":          "use volumes of the types configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected or secret in %s",
		"capabilities_baseline":      "take these capabilities out of the containers in %s",
		"seccompProfile_baseline":    "write seccompProfile: {type: RuntimeDefault} in %s, or leave it out",
		"hostPathVolumes":            "use an emptyDir or a persistentVolumeClaim in place of hostPath in %s",
		"hostNamespaces":             "take hostNetwork, hostPID and hostIPC out of %s",
		"hostPorts":                  "take hostPort out of the ports in %s; a Service makes them reachable",
		"hostProbesAndHostLifecycle": "take host out of the probes and lifecycle hooks in %s; without it they reach the pod itself",
		"privileged":                 "take privileged: true out of %s",
		"procMount":                  "take procMount out of %s",
		"procMount_restricted":       "take procMount out of %s",
		"sysctls":                    "take these sysctls out of %s",
		"windowsHostProcess":         "take hostProcess out of %s",
	}
)

// wayOut says what the author can write instead.
func wayOut(id levels.CheckID, p *pod) string {
	at := strings.Join(append(append([]string{}, p.Path...), "spec"), ".")
	if yaml, ok := inContainer[id]; ok {
		text := fmt.Sprintf("write securityContext: %s in the container, below %s", yaml, at)
		if id == "capabilities_restricted" {
			text += ", and no other add than NET_BIND_SERVICE"
		}
		return text
	}
	if yaml, ok := inPod[id]; ok {
		return fmt.Sprintf("write securityContext: %s in %s, and no other in its containers", yaml, at)
	}
	if text, ok := instead[id]; ok {
		return fmt.Sprintf(text, at)
	}
	return "take that out of " + at
}
