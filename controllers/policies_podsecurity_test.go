package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// levelOf returns the labels of Pod Security that an object has.
func levelOf(o client.Object) any {
	labels := map[string]string{}
	for label, value := range o.GetLabels() {
		if name, ok := strings.CutPrefix(label, "pod-security.kubernetes.io/"); ok {
			labels[name] = value
		}
	}
	return labels
}

// levelled waits until the namespace of the project has a level in all three modes.
func (n *team) levelled(level, version string) {
	n.t.Helper()
	n.inModes(map[string]string{"enforce": level, "enforce-version": version, "warn": level, "warn-version": version, "audit": level, "audit-version": version})
}

// inModes waits until the namespace of the project has these labels of Pod Security.
func (n *team) inModes(want map[string]string) {
	n.t.Helper()
	n.eventually(func() error {
		namespace := &corev1.Namespace{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: n.namespace()}, namespace); err != nil {
			return err
		}
		if diff := cmp.Diff(any(want), levelOf(namespace)); diff != "" {
			return fmt.Errorf("the labels (-want +got):\n%s", diff)
		}
		return nil
	})
}

// guardOf waits until the Tenant says about a guard what is wanted.
func (n *team) guardOf(name, want string) {
	n.t.Helper()
	n.eventually(func() error {
		tenant := &v1alpha1.Tenant{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: n.name}, tenant); err != nil {
			return err
		}
		for _, guard := range tenant.Status.Guards {
			if guard.Name == name && string(guard.State)+" "+guard.Reason == want {
				return nil
			}
		}
		return fmt.Errorf("no guard %s is %q: %+v", name, want, tenant.Status.Guards)
	})
}

// TestPoliciesRaiseTheLevelOfPodSecurity: a policy that becomes stricter changes the labels of the namespaces under it with one write each. What runs
// stays; an app and a pod that break the level are refused, and the App says which file requires it.
func TestPoliciesRaiseTheLevelOfPodSecurity(t *testing.T) {
	t.Parallel()
	n, other := teamOf(t, "levelled"), teamOf(t, "unlevelled")
	for _, team := range []*team{n, other} {
		team.tenanted(func(s *v1alpha1.TenantSpec) { s.PodSecurity = "baseline" })
		team.push(usualApps("  podSecurity: {fill: Disabled}\n"))
		team.ready(team.app("shop", "folder"))
		team.levelled("baseline", "latest")
	}
	root := func() error {
		return n.admin.Create(t.Context(), n.object(n.namespace(), placed("Pod", "securityContext: {runAsUser: 0}")), client.DryRunAll)
	}
	n.passes(root)

	// The lower level of a policy changes only the version.
	n.under(setting("pods", func(s *v1alpha1.PolicySpec) {
		s.PodSecurity = &v1alpha1.PodSecurityRules{Level: "baseline", Version: "v1.33"}
	}))
	n.levelled("baseline", "v1.33")
	n.ready(n.app("shop", "folder"))

	writes, others := n.changesOf(&corev1.NamespaceList{}, "", levelIn(n)), n.changesOf(&corev1.NamespaceList{}, "", levelIn(other))
	n.resets("pods", func(s *v1alpha1.PolicySpec) {
		s.PodSecurity = &v1alpha1.PodSecurityRules{Level: "restricted", Version: "v1.34"}
	})
	n.levelled("restricted", "v1.34")
	n.guardOf("PodSecurity", "Enforced level restricted, version v1.34, by spec.podSecurity of policies/levelled-pods.yaml")
	n.eventually(func() error {
		if err := root(); err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:v1.34"`) {
			return errors.Join(errors.New("it is not refused"), err)
		}
		return nil
	})
	folder := n.app("shop", "folder")
	const ask = "for the rules that only level restricted has: ask an administrator of the cluster to set podSecurity: {level: baseline} in policies/levelled-pods.yaml of the platform repository, which allows it"
	n.states(folder, v1alpha1.AllowedCondition, metav1.ConditionFalse, ask)
	n.ready(n.app("shop", "chart")) // A chart is checked with its next release.
	if len(folder.Status.Inventory.Entries) == 0 {
		t.Error("what the app delivered before is gone")
	}
	if got, of := writes(), others(); got != 1 || of != 0 {
		t.Errorf("the namespace was labelled %d times, want once; that of a tenant under no policy %d times", got, of)
	}

	// The file of a policy is away: nothing becomes weaker, not even what the Tenant says itself.
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = []string{"levelled-gone"} })
	n.states(n.project("shop"), v1alpha1.GuardrailsReadyCondition, metav1.ConditionFalse, "names what does not exist: levelled-gone")
	n.levelled("restricted", "v1.34")

	// Without the policy the Tenant decides again.
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = nil })
	n.levelled("baseline", "latest")
	n.ready(folder, n.app("shop", "chart"))
}

// TestPoliciesThatOnlyWarnOfALevelRefuseNothing: apps are delivered, and PolicyWarning says what the level would refuse; the API server warns who creates a pod, and refuses it to nobody.
func TestPoliciesThatOnlyWarnOfALevelRefuseNothing(t *testing.T) {
	n := teamOf(t, "warnlevelled")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.PodSecurity = "baseline" })
	n.push(usualApps("  podSecurity: {fill: Disabled}\n"))
	folder := n.app("shop", "folder")
	n.ready(folder)
	n.under(setting("try", func(s *v1alpha1.PolicySpec) {
		s.PodSecurity = &v1alpha1.PodSecurityRules{Action: v1alpha1.WarnAction, Level: "restricted", Version: "v1.34"}
	}))
	n.inModes(map[string]string{"enforce": "baseline", "enforce-version": "latest", "warn": "restricted", "warn-version": "v1.34", "audit": "restricted", "audit-version": "v1.34"})
	n.guardOf("PodSecurity", "Enforced level baseline, version latest, by spec.podSecurity of tenant.yaml; level restricted, version v1.34, is only warned about, by spec.podSecurity of policies/warnlevelled-try.yaml")
	n.states(folder, v1alpha1.PolicyWarningCondition, metav1.ConditionTrue, "breaks rule runAsNonRoot of the Pod Security level restricted", "see spec.podSecurity of policies/warnlevelled-try.yaml in the platform repository")
	n.ready(folder)
	by, warned := clientWithWarnings(t, env.Config, "")
	n.eventually(func() error {
		texts, err := warned.of(func() error {
			return by.Create(t.Context(), n.object(n.namespace(), placed("Pod", "securityContext: {runAsUser: 0}")), client.DryRunAll)
		})
		if text := strings.Join(texts, " "); err != nil || !strings.Contains(text, `would violate PodSecurity "restricted:v1.34"`) || !strings.Contains(text, "runAsUser=0") {
			return errors.Join(fmt.Errorf("the API server warns with %q", text), err)
		}
		return nil
	})
	n.resets("try", func(s *v1alpha1.PolicySpec) {
		s.PodSecurity = &v1alpha1.PodSecurityRules{Action: v1alpha1.AuditAction, Level: "restricted"}
	})
	n.inModes(map[string]string{"enforce": "baseline", "enforce-version": "latest", "warn": "baseline", "warn-version": "latest", "audit": "restricted", "audit-version": "latest"})
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(folder), folder); err != nil {
			return err
		}
		if c := conditions.Get(folder, v1alpha1.PolicyWarningCondition); c != nil {
			return fmt.Errorf("still warned: %s", c.Message)
		}
		return nil
	})
}

// levelIn returns the level of a namespace if it is the team's.
func levelIn(n *team) func(client.Object) any {
	name := n.namespace()
	return func(o client.Object) any {
		if o.GetName() != name {
			return nil
		}
		return levelOf(o)
	}
}
