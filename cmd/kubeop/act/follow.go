// Package act has the commands that request something from kubeop and wait for it. They set annotations, as docs/tenants.md describes them, and
// need the role edit; confirmations need the role admin.
package act

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// state is an object of kubeop with its conditions.
type state interface {
	client.Object
	conditions.Getter
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}

// check says whether waiting for an object is over: done, or by an error that waiting does not change.
type check func(state) (done bool, err error)

// pause is the time before an object is read again that could not be read or watched, or whose watch ended.
const pause = time.Second

// follow reads an object each time it changes until check says that waiting is over. It prints each new message of the condition Ready. If the
// timeout ends first, the error has the exit code NotReady.
func follow(ctx context.Context, c *call.Call, of target.Object, timeout time.Duration, over check) error {
	source, err := c.Source()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began, shown, last := c.Clock.Now(), "", state(nil)
	look := func(object client.Object) (bool, error) {
		now, ok := object.(state)
		if !ok {
			return false, fmt.Errorf("%s has no conditions", of)
		}
		last = now
		done, err := over(now)
		if message := progress(now); !done && err == nil && message != shown {
			shown = message
			if _, err := fmt.Fprintf(c.Err, "%6s  %s\n", c.Clock.Now().Sub(began).Round(time.Second), message); err != nil {
				return false, err
			}
		}
		return done, err
	}
	err = untilOver(within, c, source, of, look)
	if errors.Is(within.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		why := "nothing was seen of it"
		if last != nil {
			why = progress(last)
		}
		return &exit.Error{Code: exit.NotReady, Err: fmt.Errorf("waiting for the %s ended after %s: %s", of, timeout, why)}
	}
	return err
}

// untilOver looks at the object now and after each change. A watch that ends is opened again, and an API server that does not answer is asked
// again, if it has answered before.
func untilOver(ctx context.Context, c *call.Call, source target.Source, of target.Object, look func(client.Object) (bool, error)) error {
	for seen := false; ; seen = true {
		done, err := lookAndFollow(ctx, source, of, look)
		switch {
		case done:
			return err
		case err != nil && (!seen || !passes(err)):
			return err
		}
		select {
		case <-c.Clock.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// passes reports whether an error of a request may pass by itself.
func passes(err error) bool {
	var unreachable *url.Error
	if explained := new(target.Explained); errors.As(err, &explained) {
		return explained.MayPass
	}
	return errors.As(err, &unreachable) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
}

// lookAndFollow looks at the object, and at each change as long as the source reports changes. done: waiting is over, with or without an error.
func lookAndFollow(ctx context.Context, source target.Source, of target.Object, look func(client.Object) (bool, error)) (done bool, err error) {
	object, err := source.Get(ctx, of)
	if err != nil {
		return false, err
	}
	if done, err := look(object); done || err != nil {
		return true, err
	}
	for now, err := range source.Follow(ctx, of, object) {
		switch {
		case err != nil:
			return false, err
		case now == nil:
			return true, fmt.Errorf("the %s was deleted", of)
		}
		if done, err := look(now); done || err != nil {
			return true, err
		}
	}
	return ctx.Err() != nil, ctx.Err()
}

// progress says what an object waits for.
func progress(o state) string {
	ready := conditions.Get(o, v1alpha1.ReadyCondition)
	if ready == nil {
		return "kubeop has not looked at it yet"
	}
	return ready.Reason + ": " + ready.Message
}

// settled is a check for Ready: it is over when the object is ready in its present version, or when only a change can help.
func settled(o state) (bool, error) {
	ready := conditions.Get(o, v1alpha1.ReadyCondition)
	switch {
	case conditions.IsTrue(o, v1alpha1.SuspendedCondition):
		return false, errors.New(conditions.GetMessage(o, v1alpha1.SuspendedCondition))
	case ready == nil || !isCurrent(o, ready):
		return false, nil
	case conditions.IsTrue(o, v1alpha1.StalledCondition):
		return false, errors.New(progress(o))
	}
	return ready.Status == metav1.ConditionTrue, nil
}

// isCurrent reports whether the condition Ready is about the present version of the object.
func isCurrent(o state, ready *metav1.Condition) bool {
	if app, is := o.(*v1alpha1.App); is {
		return app.StatusIsCurrent(ready)
	}
	return ready.ObservedGeneration == o.GetGeneration()
}
