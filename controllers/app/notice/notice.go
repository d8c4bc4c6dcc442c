// Package notice reports facts about Apps that are the result of no step: the rules of Policies that they break, and what became of their volumes.
package notice

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/policy"
)

var violations = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kubeop_policy_violations_total",
	Help: "Objects of apps that break a rule of a Policy, by the policy, the rule and its action. An app counts again when what it breaks changes.",
}, []string{"policy", "rule", "action"})

// Collectors are the metrics of policies.
func Collectors() []prometheus.Collector { return []prometheus.Collector{violations} }

// maxLines is how many broken rules the condition PolicyWarning names.
const maxLines = 10

// Counter counts broken rules, those of an App once until they change.
type Counter struct{ counted subject.Memory[string] }

// Count counts the rules that an App breaks now.
func (c *Counter) Count(app *v1alpha1.App, broken []policy.Notice) {
	counted, now := c.counted.Get(app), ""
	for _, n := range broken {
		now += n.String() + string(n.Action)
	}
	if *counted == now {
		return
	}
	*counted = now
	for _, n := range broken {
		violations.WithLabelValues(n.Policy, n.Rule, string(n.Action)).Inc()
	}
}

// Forget drops the state of an App.
func (c *Counter) Forget(app *v1alpha1.App) { c.counted.Forget(app) }

// Warning returns the condition PolicyWarning of an App, by the rules for it. While it is not known what the App breaks, with broken nil, the condition stays as it is; but it
// goes with the last rule that warns.
func Warning(rules *v1alpha1.GuardrailsSpec, broken *[]policy.Notice) step.Note {
	note := step.Note{Condition: v1alpha1.PolicyWarningCondition}
	switch {
	case broken != nil:
	case rules == nil || len(rules.Warn) > 0 || slices.ContainsFunc(rules.PodSecurityNotices, warns):
		return step.Stays(note.Condition)
	default:
		return note
	}
	var lines []string
	for _, n := range *broken {
		if n.Action == v1alpha1.WarnAction {
			lines = append(lines, n.String())
		}
	}
	if len(lines) > 0 {
		note.Status, note.Reason, note.Event = metav1.ConditionTrue, v1alpha1.PolicyWarningReason, corev1.EventTypeWarning
		note.Message = strings.Join(few.Of(lines, maxLines), "\n")
	}
	return note
}

func warns(level v1alpha1.AppliedPodSecurity) bool { return level.Action == v1alpha1.WarnAction }

// Denied returns the rules that refuse objects as text, for comparison with the last ones; "" for none.
func Denied(rules *v1alpha1.GuardrailsSpec) string {
	if rules == nil || len(rules.Deny) == 0 && rules.PodSecurity == nil && rules.Network == nil && len(rules.Limits) == 0 {
		return ""
	}
	text, err := json.Marshal(v1alpha1.GuardrailsSpec{Deny: rules.Deny, PodSecurity: rules.PodSecurity, Network: rules.Network, Limits: rules.Limits})
	if err != nil {
		panic(err) // It came from JSON.
	}
	return string(text)
}
