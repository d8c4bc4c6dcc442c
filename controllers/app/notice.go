package app

import (
	"encoding/json"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/policy"
)

// violations counts the objects of Apps that break rules of Policies.
var violations = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kubeop_policy_violations_total",
	Help: "Objects of apps that break a rule of a Policy, by the policy, the rule and its action. An app counts again when what it breaks changes.",
}, []string{"policy", "rule", "action"})

// maxWarnings is how many broken rules the condition PolicyWarning names.
const maxWarnings = 10

// Collectors are the metrics of policies.
func Collectors() []prometheus.Collector { return []prometheus.Collector{violations} }

// count counts the rules that an App breaks, unless they counted before.
func (a *admitter) count(app *v1alpha1.App, broken []policy.Notice) {
	counted, now := a.counted.Get(app), ""
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

// rulesOf returns the rules that refuse objects as text; "" for none.
func rulesOf(rules *v1alpha1.GuardrailsSpec) string {
	if rules == nil || len(rules.Deny) == 0 {
		return ""
	}
	text, err := json.Marshal(rules.Deny)
	if err != nil {
		panic(err) // It came from JSON.
	}
	return string(text)
}

// policyNotes returns the condition PolicyWarning. While it is not known what the App breaks, the condition stays as it is.
func (s *scope) policyNotes() []step.Note {
	note := step.Note{Condition: v1alpha1.PolicyWarningCondition}
	if s.admitted.broken == nil {
		if last := conditions.Get(s.App, note.Condition); last != nil && s.Guardrails != nil && len(s.Guardrails.Warn) > 0 {
			note.Status, note.Reason, note.Message = last.Status, last.Reason, last.Message
		}
		return []step.Note{note}
	}
	var lines []string
	for _, n := range *s.admitted.broken {
		if n.Action == v1alpha1.WarnAction {
			lines = append(lines, n.String())
		}
	}
	if len(lines) > 0 {
		note.Status, note.Reason, note.Event = metav1.ConditionTrue, v1alpha1.PolicyWarningReason, "Warning"
		note.Message = strings.Join(few.Of(lines, maxWarnings), "\n")
	}
	return []step.Note{note}
}
