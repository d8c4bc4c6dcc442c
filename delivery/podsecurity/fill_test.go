package podsecurity

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

// deployment is a Deployment with a pod of this spec.
func deployment(spec string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: " + spec + "}}}"
}

const (
	podDone       = "seccompProfile: {type: RuntimeDefault}, runAsNonRoot: true"
	containerDone = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}"
)

func TestFillSetsWhatTheLevelRequires(t *testing.T) {
	all := "Deployment/web: seccompProfile, runAsNonRoot; container web: allowPrivilegeEscalation, capabilities.drop"
	cases := map[string]struct {
		fill, object, want, filled string
	}{
		"nothing set": {
			FillRestricted, deployment("{containers: [{name: web}]}"),
			deployment("{securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {" + containerDone + "}}]}"), all,
		},
		"empty and null settings are left out ones": {
			FillRestricted,
			deployment("{securityContext: null, containers: [{name: web, securityContext: {runAsNonRoot: null, capabilities: {drop: []}}}]}"),
			deployment("{securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {runAsNonRoot: null, " + containerDone + "}}]}"), all,
		},
		"every container of a pod, those with the same fields on one line": {
			FillRestricted,
			deployment("{initContainers: [{name: init}], containers: [{name: web}, {name: log, securityContext: {allowPrivilegeEscalation: false}}], ephemeralContainers: [{name: debug}]}"),
			deployment("{securityContext: {" + podDone + "}, initContainers: [{name: init, securityContext: {" + containerDone + "}}], containers: [{name: web, securityContext: {" + containerDone +
				"}}, {name: log, securityContext: {" + containerDone + "}}], ephemeralContainers: [{name: debug, securityContext: {" + containerDone + "}}]}"),
			"Deployment/web: seccompProfile, runAsNonRoot; containers init, web, debug: allowPrivilegeEscalation, capabilities.drop; container log: capabilities.drop",
		},
		"what a pod has that the level admits is enough": {
			FillRestricted,
			deployment("{containers: [{name: web, securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}, runAsNonRoot: true, " + containerDone + "}}]}"), "", "",
		},
		"a user, a profile and capabilities that the author chose": {
			FillRestricted,
			deployment("{securityContext: {runAsUser: 7, seccompProfile: {type: Unconfined}}, containers: [{name: web, securityContext: {capabilities: {drop: [KILL], add: [CHOWN]}, allowPrivilegeEscalation: true}}]}"),
			deployment("{securityContext: {runAsUser: 7, runAsNonRoot: true, seccompProfile: {type: Unconfined}}, containers: [{name: web, securityContext: {capabilities: {drop: [KILL], add: [CHOWN]}, allowPrivilegeEscalation: true}}]}"),
			"Deployment/web: runAsNonRoot",
		},
		"capabilities that are added stay": {
			FillRestricted,
			deployment("{securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}}]}"),
			deployment("{securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {allowPrivilegeEscalation: false, capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}}}]}"),
			"Deployment/web: container web: allowPrivilegeEscalation, capabilities.drop",
		},
		"the API server knows no SYS_ADMIN without escalation": {
			FillRestricted,
			deployment("{securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}"),
			deployment("{securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {capabilities: {add: [SYS_ADMIN], drop: [ALL]}}}]}"),
			"Deployment/web: container web: capabilities.drop",
		},
		"a pod that is to run as root": {
			FillRestricted,
			deployment("{securityContext: {runAsUser: 0, seccompProfile: {type: RuntimeDefault}}, containers: [{name: web, securityContext: {" + containerDone + "}}]}"), "", "",
		},
		"a pod that says that it may run as root": {
			FillRestricted,
			deployment("{securityContext: {runAsNonRoot: false, seccompProfile: {type: RuntimeDefault}}, containers: [{name: web, securityContext: {" + containerDone + "}}]}"), "", "",
		},
		"one container that is to run as root": {
			FillRestricted,
			deployment("{securityContext: {seccompProfile: {type: RuntimeDefault}}, initContainers: [{name: chown, securityContext: {runAsUser: 0, " + containerDone + "}}], containers: [{name: web, securityContext: {" + containerDone + "}}]}"),
			deployment("{securityContext: {seccompProfile: {type: RuntimeDefault}}, initContainers: [{name: chown, securityContext: {runAsUser: 0, " + containerDone + "}}], containers: [{name: web, securityContext: {runAsNonRoot: true, " + containerDone + "}}]}"),
			"Deployment/web: container web: runAsNonRoot",
		},
		"root in a user namespace of the pod's own": {
			FillRestricted,
			deployment("{hostUsers: false, securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: web, securityContext: {" + containerDone + "}}]}"), "", "",
		},
		"a privileged container is left alone": {
			FillRestricted, deployment("{containers: [{name: web, securityContext: {privileged: true}}]}"), "", "",
		},
		"a container beside a privileged one is not": {
			FillRestricted, deployment("{containers: [{name: node, securityContext: {privileged: true}}, {name: web}]}"),
			deployment("{securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: node, securityContext: {privileged: true}}, {name: web, securityContext: {runAsNonRoot: true, " + containerDone + "}}]}"),
			"Deployment/web: seccompProfile; container web: runAsNonRoot, allowPrivilegeEscalation, capabilities.drop",
		},
		"Windows": {FillRestricted, deployment("{os: {name: windows}, containers: [{name: web}]}"), "", ""},
		"settings that cannot be read": {
			FillRestricted, deployment("{securityContext: [], containers: [{name: web}]}"), "", "",
		},
		"a container that cannot be read": {FillRestricted, deployment("{containers: [web]}"), "", ""},
		"an object without pods":          {FillRestricted, "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web}]}}}}", "", ""},
		"Kubernetes' kinds only":          {FillRestricted, "{apiVersion: example.com/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web}]}}}}", "", ""},
		"a Pod": {
			FillRestricted, "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web}]}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {" + containerDone + "}}]}}",
			"Pod/web: seccompProfile, runAsNonRoot; container web: allowPrivilegeEscalation, capabilities.drop",
		},
		"a CronJob": {
			FillRestricted, "{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web}]}}}}}}",
			"{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {jobTemplate: {spec: {template: {spec: {securityContext: {" + podDone + "}, containers: [{name: web, securityContext: {" + containerDone + "}}]}}}}}}",
			"CronJob/web: seccompProfile, runAsNonRoot; container web: allowPrivilegeEscalation, capabilities.drop",
		},
		"baseline": {
			FillBaseline, deployment("{containers: [{name: web}]}"),
			deployment("{securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: web}]}"), "Deployment/web: seccompProfile",
		},
		"baseline leaves a Job as it may exist": {
			FillBaseline, "{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web}]}}}}", "", "",
		},
		"nothing": {FillNothing, deployment("{containers: [{name: web}]}"), "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, want := parsed(t, c.object), parsed(t, c.object)
			if c.want != "" {
				want = parsed(t, c.want)
			}
			filled := Fill([]*unstructured.Unstructured{got}, c.fill)
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var lines []string
			if c.filled != "" {
				lines = []string{c.filled}
			}
			if diff := cmp.Diff(lines, filled); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
			if again := Fill([]*unstructured.Unstructured{got}, c.fill); len(again) > 0 {
				t.Errorf("filled in twice: %v", again)
			}
		})
	}
}

func TestTheAppAndTheLevelDecideWhatIsFilled(t *testing.T) {
	for _, c := range []struct {
		app         v1alpha1.PodSecurityFill
		level, want string
	}{
		{"", "restricted", FillRestricted}, {"", "baseline", FillBaseline}, {"", "privileged", FillNothing},
		{v1alpha1.FillEnabled, "restricted", FillRestricted}, {v1alpha1.FillEnabled, "baseline", FillRestricted}, {v1alpha1.FillEnabled, "privileged", FillNothing},
		{v1alpha1.FillDisabled, "restricted", FillNothing}, {v1alpha1.FillDisabled, "baseline", FillNothing},
	} {
		if got := FillOf(c.app, c.level); got != c.want {
			t.Errorf("%q at %s: %s, want %s", c.app, c.level, got, c.want)
		}
	}
}

func TestAStatusListsTwentyObjects(t *testing.T) {
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprint(i))
	}
	if got := Listed(lines); len(got) != 20 || got[19] != "19" {
		t.Errorf("20 lines: %v", got)
	}
	if got := Listed(append(lines, "20", "21")); len(got) != 20 || got[18] != "18" || got[19] != "and 3 more" {
		t.Errorf("22 lines: %v", got)
	}
}

// TestOnlyAnUnusualFillIdentifiesARelease: what is filled in by default must not make a new release of every app.
func TestOnlyAnUnusualFillIdentifiesARelease(t *testing.T) {
	for fill, want := range map[string]string{FillRestricted: "", FillBaseline: FillBaseline, FillNothing: FillNothing} {
		if got := Unusual(fill); got != want {
			t.Errorf("%q: got %q, want %q", fill, got, want)
		}
	}
}
