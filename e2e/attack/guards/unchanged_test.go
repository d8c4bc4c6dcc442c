//go:build e2e

package guards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// unchanged checks that no object of the victim changed, and that nothing of it was revealed.
func unchanged(t *testing.T, before []string) {
	t.Helper()
	if after := versions(t); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("objects of another tenant changed:\n%s\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	for what, said := range map[string][]string{"message": tried.messages, "status": statuses(t), "event": events(t)} {
		if len(said) == 0 {
			t.Errorf("there is no %s to search", what)
		}
		for _, text := range said {
			for _, secret := range []string{victim, hidden, platform.Path()} {
				if strings.Contains(text, secret) {
					t.Errorf("a %s reveals %q: %s", what, secret, text)
				}
			}
		}
	}
	// Operators may read of every tenant, but of one in what is about it: whoever gets the lines about the attacker must not learn of the victim.
	for what, lines := range map[string][]string{"line of the log": logged(t), "metric": metrics(t)} {
		about := 0
		for _, line := range lines {
			named := strings.Contains(line, attacker) || strings.Contains(line, narrow)
			if named {
				about++
			}
			if strings.Contains(line, hidden) || named && strings.Contains(line, victim) {
				t.Errorf("a %s is about another tenant: %s", what, line)
			}
		}
		if about == 0 {
			t.Errorf("no %s is about the attacker", what)
		}
	}
}

// statuses are those of kubeop's objects of the attacker.
func statuses(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, kind := range []string{"Tenant", "Repository", "Project", "App"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(v1alpha1.GroupVersion.String())
		list.SetKind(kind + "List")
		must(t, platform.Client.List(t.Context(), list))
		for _, o := range list.Items {
			if !slices.Contains([]string{attacker, narrow}, o.GetName()) && !ofAttacker(o.GetNamespace()) {
				continue
			}
			status, err := json.Marshal(o.Object["status"])
			must(t, err)
			all = append(all, kind+" "+o.GetName()+": "+string(status))
		}
	}
	return all
}

func ofAttacker(namespace string) bool {
	return slices.ContainsFunc([]string{attacker, narrow}, func(tenant string) bool {
		return namespace == v1alpha1.HomeNamespace(tenant) || strings.HasPrefix(namespace, v1alpha1.HomeNamespace(tenant)+"-")
	})
}

// events are those in the attacker's namespaces.
func events(t *testing.T) []string {
	t.Helper()
	list := &corev1.EventList{}
	must(t, platform.Client.List(t.Context(), list))
	var all []string
	for _, e := range list.Items {
		if ofAttacker(e.Namespace) {
			all = append(all, fmt.Sprint(e.InvolvedObject, e.Reason, e.Message, e.Annotations))
		}
	}
	return all
}

func logged(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(platform.Operator.Log)
	must(t, err)
	return strings.Split(string(text), "\n")
}

// metrics are those of the operator, as soon as one is about the attacker: it may have just started.
func metrics(t *testing.T) []string {
	t.Helper()
	text := ""
	soon(t, "a metric is about the attacker", func(ctx context.Context) (err error) {
		if text, err = stage.Get(ctx, "http://"+platform.Operator.Metrics+"/metrics"); err == nil && !strings.Contains(text, attacker) {
			err = errors.New("none is")
		}
		return err
	})
	return strings.Split(text, "\n")
}
