package podsecurity

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/policy"
)

func TestARefusalSaysWhatToDo(t *testing.T) {
	const ask = "; or ask an administrator of the cluster to set podSecurity: baseline in tenants/acme/tenant.yaml of the platform repository, which allows it"
	const no = "; no level that a Tenant may have allows it, so otherwise ask an administrator of the cluster to deliver it from platform/ of the platform repository"
	cases := map[string]struct {
		level, spec string
		want        []string
	}{
		"what fill would mend": {"restricted", "{containers: [{name: a}, {name: b}]}", []string{
			`Deployment/web breaks rule allowPrivilegeEscalation of the Pod Security level restricted: containers "a", "b" must set securityContext.allowPrivilegeEscalation=false; ` +
				"write securityContext: {allowPrivilegeEscalation: false} in the container, below spec.template.spec",
			`Deployment/web breaks rule capabilities of the Pod Security level restricted: containers "a", "b" must set securityContext.capabilities.drop=["ALL"]; ` +
				"write securityContext: {capabilities: {drop: [ALL]}} in the container, below spec.template.spec, and no other add than NET_BIND_SERVICE",
			`Deployment/web breaks rule runAsNonRoot of the Pod Security level restricted: pod or containers "a", "b" must set securityContext.runAsNonRoot=true; ` +
				"write securityContext: {runAsNonRoot: true} in spec.template.spec, and no other in its containers",
			`Deployment/web breaks rule seccompProfile of the Pod Security level restricted: pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"; ` +
				"write securityContext: {seccompProfile: {type: RuntimeDefault}} in spec.template.spec, and no other in its containers",
			"for the rules that only level restricted has: " + strings.TrimPrefix(ask, "; or "),
		}},
		"root": {"restricted", "{securityContext: {" + podDone + ", runAsUser: 0}, containers: [{name: a, securityContext: {" + containerDone + "}}]}", []string{
			"Deployment/web breaks rule runAsUser of the Pod Security level restricted: pod must not set runAsUser=0; " +
				"take runAsUser: 0 out of spec.template.spec, or write a user there that is not 0" + ask,
		}},
		"what baseline refuses, too": {"restricted", "{hostNetwork: true, volumes: [{name: v, hostPath: {path: /}}], securityContext: {" + podDone + "}, containers: [{name: a, securityContext: {" +
			"allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_RAW]}}}]}", []string{
			`Deployment/web breaks rule capabilities of the Pod Security level restricted: container "a" must not include "NET_RAW" in securityContext.capabilities.add; ` +
				"write securityContext: {capabilities: {drop: [ALL]}} in the container, below spec.template.spec, and no other add than NET_BIND_SERVICE",
			`Deployment/web breaks rule hostNamespaces of the Pod Security level restricted: hostNetwork=true; take hostNetwork, hostPID and hostIPC out of spec.template.spec`,
			`Deployment/web breaks rule restrictedVolumes of the Pod Security level restricted: volume "v" uses restricted volume type "hostPath"; ` +
				"use volumes of the types configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected or secret in spec.template.spec",
			"for the rules of level baseline: " + strings.TrimPrefix(no, "; "),
		}},
		"a volume that baseline allows": {"restricted", "{volumes: [{name: v, nfs: {path: /, server: a}}], securityContext: {" + podDone + "}, containers: [{name: a, securityContext: {" + containerDone + "}}]}", []string{
			`Deployment/web breaks rule restrictedVolumes of the Pod Security level restricted: volume "v" uses restricted volume type "nfs"; ` +
				"use volumes of the types configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected or secret in spec.template.spec" + ask,
		}},
		"baseline": {"baseline", "{containers: [{name: a, securityContext: {privileged: true}}]}", []string{
			`Deployment/web breaks rule privileged of the Pod Security level baseline: container "a" must not set securityContext.privileged=true; take privileged: true out of spec.template.spec` + no,
		}},
		"a name on two lines": {"baseline", `{containers: [{name: "a\nb", securityContext: {privileged: true}}]}`, []string{
			`Deployment/web breaks rule privileged of the Pod Security level baseline: container "a b" must not set securityContext.privileged=true; take privileged: true out of spec.template.spec` + no,
		}},
		"privileged":                   {"privileged", "{hostNetwork: true, containers: [{name: a}]}", nil},
		"nothing to refuse":            {"baseline", "{containers: [{name: a}]}", nil},
		"what the API server will say": {"restricted", "{containers: [{name: 5}]}", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := Judge{Level: c.level, Version: api.LatestVersion(), Tenant: "acme"}
			got := ""
			if err := j.Check([]*unstructured.Unstructured{parsed(t, deployment(c.spec))}); err != nil {
				got = err.Error()
			}
			if want := strings.Join(c.want, "\n"); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestEachRuleOfBaselineSaysWhatToTakeOut, and where.
func TestEachRuleOfBaselineSaysWhatToTakeOut(t *testing.T) {
	const container = "{containers: [{name: a, %s}]}"
	for spec, want := range map[string]string{
		fmt.Sprintf(container, "securityContext: {capabilities: {add: [NET_RAW]}}"):                  "rule capabilities … take these capabilities out of the containers in spec.template.spec",
		fmt.Sprintf(container, "securityContext: {seccompProfile: {type: Unconfined}}"):              "rule seccompProfile … write seccompProfile: {type: RuntimeDefault} in spec.template.spec, or leave it out",
		fmt.Sprintf(container, "securityContext: {procMount: Unmasked}"):                             "rule procMount … take procMount out of spec.template.spec",
		fmt.Sprintf(container, "securityContext: {windowsOptions: {hostProcess: true}}"):             "rule windowsHostProcess … take hostProcess out of spec.template.spec",
		fmt.Sprintf(container, "ports: [{containerPort: 80, hostPort: 80}]"):                         "rule hostPorts … take hostPort out of the ports in spec.template.spec; a Service makes them reachable",
		fmt.Sprintf(container, "livenessProbe: {httpGet: {host: 127.0.0.1, port: 80}}"):              "rule hostProbesAndHostLifecycle … take host out of the probes and lifecycle hooks in spec.template.spec; without it they reach the pod itself",
		"{containers: [{name: a}], hostPID: true}":                                                   "rule hostNamespaces … take hostNetwork, hostPID and hostIPC out of spec.template.spec",
		"{containers: [{name: a}], volumes: [{name: v, hostPath: {path: /}}]}":                       "rule hostPathVolumes … use an emptyDir or a persistentVolumeClaim in place of hostPath in spec.template.spec",
		"{containers: [{name: a}], securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}": "rule sysctls … take these sysctls out of spec.template.spec",
	} {
		err := Judge{Level: "baseline", Version: api.LatestVersion(), Tenant: "acme"}.Check([]*unstructured.Unstructured{parsed(t, deployment(spec))})
		rule, remedy, _ := strings.Cut(want, " … ")
		if err == nil || strings.Count(err.Error(), "breaks rule") != 1 || !strings.Contains(err.Error(), "breaks "+rule+" of the Pod Security level baseline: ") || !strings.Contains(err.Error(), "; "+remedy+"; no level") {
			t.Errorf("%s:\ngot  %v\nwant %s", spec, err, want)
		}
	}
}

func TestARefusalOfThePlatformNamesItsOwnSetting(t *testing.T) {
	for spec, level := range map[string]string{
		"{securityContext: {" + podDone + ", runAsUser: 0}, containers: [{name: a, securityContext: {" + containerDone + "}}]}":      "baseline",
		"{hostNetwork: true, securityContext: {" + podDone + "}, containers: [{name: a, securityContext: {" + containerDone + "}}]}": "privileged",
	} {
		err := Judge{Level: "restricted", Version: api.LatestVersion(), Tenant: v1alpha1.PlatformTenant}.Check([]*unstructured.Unstructured{parsed(t, deployment(spec))})
		if want := "; or set spec.namespace.podSecurity: " + level + " in project.yaml, which allows it"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want the end %q", err, want)
		}
	}
}

func TestTheVersionOfTheClusterDecides(t *testing.T) {
	object := parsed(t, deployment("{hostUsers: false, securityContext: {runAsUser: 0, seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, securityContext: {"+containerDone+"}}]}"))
	for _, c := range []struct {
		major, minor string
		broken       int
	}{{"1", "34", 2}, {"1", "35", 0}, {"1", "35+", 0}, {"1", "99", 0}, {"", "", 0}} {
		err := Judge{Level: "restricted", Version: VersionOf(c.major, c.minor), Tenant: "acme"}.Check([]*unstructured.Unstructured{object})
		if broken := strings.Count(fmt.Sprint(err), "breaks rule"); broken != c.broken {
			t.Errorf("version %q.%q: %d rules are broken: %v, want %d", c.major, c.minor, broken, err, c.broken)
		}
	}
}

func TestRefusalsAreBoundedAndViolations(t *testing.T) {
	var objects []*unstructured.Unstructured
	for range 500 {
		objects = append(objects, parsed(t, deployment("{hostNetwork: true, containers: []}")))
	}
	err := Judge{Level: "baseline", Version: api.LatestVersion()}.Check(objects)
	var violation *policy.Violation
	if !errors.As(err, &violation) || violation.Rule != Rule || policy.OnlyUnknownKinds(err) {
		t.Fatalf("it is no refusal: %v", err)
	}
	text := err.Error()
	lines := strings.Split(text, "\n")
	last := []string{
		fmt.Sprintf("%d rules more are broken by these and other objects", 500-len(lines)+3),
		"for rule hostNamespaces: take hostNetwork, hostPID and hostIPC out of spec.template.spec",
		"for the rules of level baseline: no level that a Tenant may have allows it, so otherwise " + policy.AskPlatform,
	}
	if diff := cmp.Diff(last, lines[max(len(lines)-3, 0):]); diff != "" || len(text) > maxText+1000 || len(lines) < 50 {
		t.Errorf("%d bytes and %d lines, the last (-want +got):\n%s", len(text), len(lines), diff)
	}
}

// TestAPolicyThatRequiresTheLevelIsNamed, with the version of its checks, which is never newer than the API server.
func TestAPolicyThatRequiresTheLevelIsNamed(t *testing.T) {
	root := parsed(t, deployment("{securityContext: {"+podDone+", runAsUser: 0}, containers: [{name: a, securityContext: {"+containerDone+"}}]}"))
	probing := parsed(t, deployment("{containers: [{name: a, livenessProbe: {httpGet: {host: 127.0.0.1, port: 80}}}]}"))
	const ask = "ask an administrator of the cluster to set "
	for name, c := range map[string]struct {
		held    *v1alpha1.AppliedPodSecurity
		version string
		want    string
	}{
		"none":          {nil, "36", ask + "podSecurity: baseline in tenants/acme/tenant.yaml of the platform repository, which allows it"},
		"another level": {held("baseline", "v1.30", "a"), "36", ask + "podSecurity: baseline in tenants/acme/tenant.yaml of the platform repository, which allows it"},
		"a policy":      {held("restricted", "v1.30", "a"), "36", ask + "podSecurity: {level: baseline} in policies/a.yaml of the platform repository, which allows it"},
		"both":          {held("restricted", "latest", "a", "tenant.yaml"), "36", ask + "podSecurity: {level: baseline} in policies/a.yaml, podSecurity: baseline in tenants/acme/tenant.yaml of the platform repository, which allows it"},
		"many":          {held("restricted", "latest", "a", "b", "c", "d", "e"), "36", "in policies/d.yaml, and 1 more of the platform repository, which allows it"},
	} {
		judge := Judge{Level: "restricted", Version: VersionOf("1", c.version), Tenant: "acme"}.Under(&v1alpha1.GuardrailsSpec{PodSecurity: c.held})
		if err := judge.Check([]*unstructured.Unstructured{root}); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want the end %q", name, err, c.want)
		}
	}
	// Since Kubernetes 1.34 no probe may name a host.
	for pinned, broken := range map[string]int{"v1.33": 0, "v1.34": 1, "v1.99": 1, "latest": 1, "none": 1} {
		judge := Judge{Level: "baseline", Version: VersionOf("1", "36"), Tenant: "acme"}
		if pinned != "none" {
			judge = judge.Under(&v1alpha1.GuardrailsSpec{PodSecurity: held("baseline", pinned, "a")})
		}
		if got := strings.Count(fmt.Sprint(judge.Check([]*unstructured.Unstructured{probing})), "breaks rule"); got != broken {
			t.Errorf("version %s: %d rules are broken, want %d", pinned, got, broken)
		}
	}
	if judge := (Judge{Level: "restricted", Tenant: "acme"}); !reflect.DeepEqual(judge, judge.Under(nil)) {
		t.Error("no Guardrails change what is judged")
	}
}

func held(level, version string, by ...string) *v1alpha1.AppliedPodSecurity {
	return &v1alpha1.AppliedPodSecurity{PodSecurityRules: v1alpha1.PodSecurityRules{Level: level, Version: version}, Policies: by}
}
