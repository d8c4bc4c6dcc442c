// Package flap recognizes an App that fails again and again, with short times between the failures in which it looks healthy. Such an App is a
// container in a crash loop, for example, that counts as available for the seconds that it runs.
package flap

import (
	"slices"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/health"
)

const (
	// least and most bound how long an App that fails again and again has to look healthy before it counts as healthy.
	least = time.Minute
	most  = 10 * time.Minute
	// again is added to the causes. It names no time, so that the condition stays the same.
	again = "this comes back again and again, so the app counts as healthy when it has run for twice as long as the last time"
	// maxCauses is how many causes are kept: a message names three lines.
	maxCauses = 2
)

// Detector remembers the failures of Apps between Reconciles. A restart of the operator forgets them. The zero value is empty.
type Detector struct{ memory subject.Memory[memory] }

// memory is about one phase of an App: a revision that is judged.
type memory struct {
	phase string
	// failed is the time of the last failure, and healthy the time since which the App looks healthy, zero while it does not.
	failed, healthy time.Time
	// ran is for how long the App looked healthy before the last failure that followed another one; zero if there was none.
	ran time.Duration
	// causes are those of the last failure.
	causes []string
}

// Forget drops the state of an App.
func (d *Detector) Forget(app *v1alpha1.App) { d.memory.Forget(app) }

// Judge returns the verdict on the health of an App. It returns the causes of the last failure in place of a verdict that is better, if the App
// failed twice in the phase and did not look healthy since for twice as long as before the last failure, at least a minute, at most ten.
func (d *Detector) Judge(s *subject.Subject, phase string, v health.Verdict) health.Verdict {
	m, now := d.memory.Get(s.App), s.Now()
	if m.phase != phase {
		*m = memory{phase: phase}
	}
	switch {
	case len(v.Failed) > 0:
		m.fail(now, v.Failed)
	case !v.Healthy():
		m.healthy = time.Time{}
	case m.healthy.IsZero():
		m.healthy = now
	}
	if m.ran == 0 {
		return v
	}
	if !m.healthy.IsZero() && now.Sub(m.healthy) >= min(max(2*m.ran, least), most) {
		*m = memory{}
		return v
	}
	return health.Verdict{Failed: append(slices.Clone(m.causes), again), Final: v.Final}
}

// fail records a failure. It is a relapse if the App failed before and looked healthy since, for a time that is not long.
func (m *memory) fail(now time.Time, causes []string) {
	if !m.failed.IsZero() && !m.healthy.IsZero() {
		ran := now.Sub(m.healthy)
		m.ran = 0
		if ran < most {
			m.ran = max(ran, time.Second)
		}
	}
	m.failed, m.healthy = now, time.Time{}
	m.causes = slices.Clone(causes[:min(len(causes), maxCauses)])
}
