package fetch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// firstPause follows a first failure; each further one doubles it up to lastPause, as the controllers' queue does.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// forgotten is how long a failure that nobody asks about again is kept.
	forgotten = time.Hour
)

// Question is what makes a source be asked again: a changed one is asked at once.
type Question struct {
	// Generation of the object whose source it is.
	Generation int64
	// Request is the last reconcile request in the object's annotations.
	Request string
	// MaxAge is how long an answer serves, and the most a failure does.
	MaxAge time.Duration
	// Retry is how long a failure serves. Default: 1 s, doubling up to 5 min.
	Retry time.Duration
}

// Scheduled is an object that says when to work on it.
type Scheduled interface {
	metav1.Object
	GetSchedule() *v1alpha1.Schedule
}

// QuestionOf returns the question of an object as it is now. MaxAge is a little less than its interval, whose jitter would
// otherwise let every second look pass unasked.
func QuestionOf(o Scheduled) Question {
	schedule := o.GetSchedule()
	q := Question{Generation: o.GetGeneration(), MaxAge: schedule.Every() * 9 / 10}
	q.Request, _ = meta.ReconcileAnnotationValue(o.GetAnnotations())
	if schedule.RetryInterval != nil {
		q.Retry = schedule.RetryInterval.Duration
	}
	return q
}

// Recent remembers what a source last answered, so that a Reconcile which a watch woke does not ask the source again. It
// remembers failures too: an app whose pods crash wakes all the time, and each time would be one more attempt to log in
// with a password that is wrong. It is a memory, not a store: what it forgets is asked once more. Safe for concurrent use.
type Recent[T any] struct {
	// Now tells the time.
	Now func() time.Time

	mu     sync.Mutex
	good   map[string]answer[T]
	failed map[string]failed
}

type answer[T any] struct {
	question Question
	at       time.Time
	value    T
}

type failed struct {
	question Question
	err      error
	// times it failed in a row, and until when nobody is asked.
	times int
	until time.Time
}

// Get returns what was last answered for key where the question is the same, and the answer younger than MaxAge or the
// failure's pause not over; else it asks. ErrBusy and an interrupted fetch say nothing of the source, and are not
// remembered.
func (r *Recent[T]) Get(key string, q Question, ask func() (T, error)) (T, error) {
	if last, ok := r.remembered(key, q); ok {
		return last.value, last.err
	}
	value, err := ask()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		if r.good == nil {
			r.good = map[string]answer[T]{}
		}
		r.good[key] = answer[T]{question: q, at: r.Now(), value: value}
		delete(r.failed, key)
	case !errors.Is(err, ErrBusy) && !errors.Is(err, context.Canceled):
		r.remember(key, q, err)
	}
	return value, err
}

// outcome is what asking came to.
type outcome[T any] struct {
	value T
	err   error
}

func (r *Recent[T]) remembered(key string, q Question) (outcome[T], bool) {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, known := r.failed[key]; known && last.question == q {
		return outcome[T]{err: last.err}, now.Before(last.until)
	}
	last, known := r.good[key]
	return outcome[T]{value: last.value}, known && last.question == q && now.Sub(last.at) < q.MaxAge
}

func (r *Recent[T]) remember(key string, q Question, err error) {
	now := r.Now()
	times := 1
	if last := r.failed[key]; last.question == q {
		times = last.times + 1
	}
	if r.failed == nil {
		r.failed = map[string]failed{}
	}
	for old, f := range r.failed {
		if now.Sub(f.until) > forgotten {
			delete(r.failed, old)
		}
	}
	r.failed[key] = failed{question: q, err: err, times: times, until: now.Add(q.pause(times))}
}

// pause follows the given number of failures in a row.
func (q Question) pause(times int) time.Duration {
	pause := q.Retry
	if pause == 0 {
		pause = min(firstPause<<min(times-1, 16), lastPause)
	}
	return min(pause, q.MaxAge)
}

// Last returns the last good answer for key, however old, and what was asked then.
func (r *Recent[T]) Last(key string) (T, Question, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.good[key]
	return last.value, last.question, ok
}

// Forget drops what is remembered for key.
func (r *Recent[T]) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.good, key)
	delete(r.failed, key)
}
