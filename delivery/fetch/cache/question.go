package cache

import (
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/backoff"
)

// Question decides when a source is fetched again: at once if the question has changed.
type Question struct {
	// Generation of the object that has the source.
	Generation int64
	// Request is the last reconcile request in the object's annotations.
	Request string
	// MaxAge is how long an answer is used, and the longest time for a failure.
	MaxAge time.Duration
	// Retry is how long a failure is used. Default: 1 s, doubling up to 5 min.
	Retry time.Duration
}

// Scheduled is an object with an interval.
type Scheduled interface {
	metav1.Object
	GetSchedule() *v1alpha1.Schedule
}

// QuestionOf returns the question of an object as of now.
func QuestionOf(o Scheduled) Question { return QuestionEvery(o, o.GetSchedule().Every()) }

// QuestionEvery is QuestionOf for an object with another interval. MaxAge is a little shorter than the interval, because otherwise its jitter
// would make every second pass find a cached answer.
func QuestionEvery(o Scheduled, interval time.Duration) Question {
	schedule := o.GetSchedule()
	q := Question{Generation: o.GetGeneration(), MaxAge: interval * 9 / 10}
	q.Request, _ = meta.ReconcileAnnotationValue(o.GetAnnotations())
	if schedule.RetryInterval != nil {
		q.Retry = schedule.RetryInterval.Duration
	}
	return q
}

// cause identifies the question among those to the same source.
func (q Question) cause() string {
	return fmt.Sprintf("%d %q %s %s", q.Generation, q.Request, q.MaxAge, q.Retry)
}

// Pause follows the given number of failures in a row.
func (q Question) Pause(times int) time.Duration {
	pause := q.Retry
	if pause == 0 {
		pause = backoff.Pause(times)
	}
	return min(pause, q.MaxAge)
}
