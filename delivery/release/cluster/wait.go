package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/condition"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// DefaultTimeout of a wait.
const DefaultTimeout = 5 * time.Minute

// errTimeUp ends a wait.
var errTimeUp = errors.New("time is up")

// The pauses between two checks grow from the first to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = time.Second
)

func (c *Client) waitTimeout() time.Duration {
	if c.Terms.Timeout <= 0 {
		return DefaultTimeout
	}
	return c.Terms.Timeout
}

// inTime formats a timeout with the field that sets it.
func (c *Client) inTime(timeout time.Duration) string {
	if c.Terms.TimeoutField == "" {
		return timeout.String()
	}
	return timeout.String() + " (" + c.Terms.TimeoutField + ")"
}

// await calls look at once and then repeatedly, until look is done or fails for a reason other than the environment. It ends with
// errTimeUp, or with ErrSuperseded when ended is closed. If the first call succeeds, it does not count as waiting.
func (c *Client) await(timeout time.Duration, ended <-chan struct{}, look func() (bool, error)) error {
	done, err := look()
	if done || err != nil && !cause.IsEnvironment(err) {
		return err
	}
	return c.whileIdle(func() error {
		deadline := c.clock.NewTimer(timeout)
		defer deadline.Stop()
		for pause := firstPause; ; pause = min(2*pause, lastPause) {
			again := c.clock.NewTimer(pause)
			select {
			case <-ended:
				again.Stop()
				return fault.ErrSuperseded
			case <-deadline.C():
				again.Stop()
				return errTimeUp
			case <-again.C():
			}
			if done, err := look(); done || err != nil && !cause.IsEnvironment(err) {
				return err
			}
		}
	})
}

// Wait waits until the objects are ready; a Job is ready when it has begun.
func (c *Client) Wait(list kube.ResourceList, timeout time.Duration) error {
	return c.waitFor(list, timeout, false)
}

// WaitWithJobs waits until the objects are ready and the Jobs have completed.
func (c *Client) WaitWithJobs(list kube.ResourceList, timeout time.Duration) error {
	return c.waitFor(list, timeout, true)
}

func (c *Client) waitFor(list kube.ResourceList, timeout time.Duration, jobs bool) error {
	left := withClient(list)
	why := ""
	var last *unstructured.Unstructured
	err := c.await(timeout, c.Terms.Superseded, func() (bool, error) {
		for len(left) > 0 {
			o, err := helper(left[0]).Get(left[0].Namespace, left[0].Name)
			if err != nil {
				why = err.Error()
				return false, named(left[0], err)
			}
			if last, err = unstructuredOf(o); err != nil {
				return false, err
			}
			ready, message, err := ready(last, jobs)
			if err != nil || !ready {
				why = message
				return false, named(left[0], err)
			}
			left = left[1:]
		}
		return true, nil
	})
	if !errors.Is(err, errTimeUp) {
		return c.Faults.Note(err)
	}
	if culprit := c.reason(last); culprit != "" {
		why = culprit
	}
	return c.Faults.Note(fmt.Errorf("%s is not ready after %s: %s", nameOf(left[0]), c.inTime(timeout), why))
}

// ready judges an object with delivery/health, and says what the object waits for. It returns an error if waiting does not help. Without
// jobs, a Job that has begun is ready, because `helm --wait` waits for the end of Jobs only with --wait-for-jobs.
func ready(u *unstructured.Unstructured, jobs bool) (bool, string, error) {
	why, final, err := health.WhyUnhealthy(u)
	switch {
	case err != nil:
		return false, "", fmt.Errorf("judging: %w", err)
	case final:
		return false, "", errors.New(why)
	}
	return why == "" || !jobs && begun(u), why, nil
}

// begun reports whether an object is a Job that has begun and is not being deleted.
func begun(u *unstructured.Unstructured) bool {
	start, _, _ := unstructured.NestedString(u.Object, "status", "startTime")
	return isKind(u, batchv1.GroupName, "Job") && start != "" && !terminating(u)
}

// WatchUntilReady waits for hooks: Jobs until they have completed, Pods until they have succeeded; other kinds are done when they exist. A
// hook that was deleted meanwhile counts as done, as in Helm.
func (c *Client) WatchUntilReady(list kube.ResourceList, timeout time.Duration) error {
	var work kube.ResourceList
	for _, info := range withClient(list) {
		if u, err := unstructuredOf(info.Object); err == nil && ends(u) != nil {
			work = append(work, info)
		}
	}
	if len(work) == 0 {
		return nil
	}
	return c.Faults.Note(c.whileIdle(func() error {
		return fault.Join(each(work, func(info *resource.Info) error { return c.hookDone(info, timeout) })...)
	}))
}

// ends returns the function that checks whether a hook has ended; nil for kinds that are done when they exist.
func ends(u *unstructured.Unstructured) func(*unstructured.Unstructured) (bool, error) {
	switch {
	case isKind(u, batchv1.GroupName, "Job"):
		return jobDone
	case isKind(u, corev1.GroupName, "Pod"):
		return podDone
	}
	return nil
}

func jobDone(u *unstructured.Unstructured) (bool, error) {
	ended, failed, why := condition.JobEnded(u)
	if failed {
		return true, &hookFailed{why}
	}
	return ended, nil
}

func podDone(u *unstructured.Unstructured) (bool, error) {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if phase == string(corev1.PodFailed) {
		return true, &hookFailed{}
	}
	return phase == string(corev1.PodSucceeded), nil
}

// hookFailed says that a hook ended with a failure, and why, if its status says so.
type hookFailed struct{ why string }

func (e *hookFailed) Error() string {
	if e.why == "" {
		return "failed"
	}
	return "failed: " + e.why
}

func (c *Client) hookDone(info *resource.Info, timeout time.Duration) error {
	u, err := unstructuredOf(info.Object)
	if err != nil {
		return err
	}
	err = c.follow(info, timeout, ends(u))
	if err == nil || cause.IsEnvironment(err) {
		return err
	}
	return hookError(nameOf(info), err, c.inTime(timeout), c.reason(unread(u)))
}

// hookError formats the error of following a hook. reason comes from Explain; "" for none. The texts are compared only so that the message
// does not repeat itself.
func hookError(hook string, err error, timeout, reason string) error {
	var failed *hookFailed
	switch isFailed := errors.As(err, &failed); {
	case isFailed && strings.HasPrefix(failed.Error(), reason):
		return fmt.Errorf("hook %s %w", hook, failed) // The reason does not add anything.
	case isFailed:
		return fmt.Errorf("hook %s: %s", hook, reason) // The reason begins with the text in the object's status.
	case !errors.Is(err, errTimeUp):
		return fmt.Errorf("hook %s: %w", hook, err)
	case reason != "":
		reason = ": " + reason
	}
	return fmt.Errorf("hook %s has not ended after %s%s%s", hook, timeout, reason, strings.TrimPrefix(err.Error(), errTimeUp.Error()))
}

// unread returns an object without its status, which is outdated.
func unread(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	delete(u.Object, "status")
	return u
}

// follow watches an object from the version in the info, and reads it when a watch ends. Its errTimeUp says why the last watch failed.
func (c *Client) follow(info *resource.Info, timeout time.Duration, done func(*unstructured.Unstructured) (bool, error)) error {
	deadline := c.clock.NewTimer(timeout)
	defer deadline.Stop()
	for version := info.ResourceVersion; ; {
		w, failed := helper(info).WatchSingle(info.Namespace, info.Name, version)
		if failed == nil {
			ended, err := until(w, deadline.C(), done)
			w.Stop()
			if ended || err != nil {
				return err
			}
		}
		pause := c.clock.NewTimer(firstPause)
		select {
		case <-deadline.C():
			pause.Stop()
			if failed != nil {
				return fmt.Errorf("%w; watching it: %s", errTimeUp, failed.Error())
			}
			return errTimeUp
		case <-pause.C():
		}
		o, err := helper(info).Get(info.Namespace, info.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil && !cause.IsEnvironment(err) {
			return err
		}
		u, err := unstructuredOf(o)
		if err != nil {
			continue
		}
		if ended, err := done(u); ended {
			return err
		}
		version = u.GetResourceVersion()
	}
}

// until reads a watch until the object has ended or is gone. It returns false if the watch ended before.
func until(w watch.Interface, deadline <-chan time.Time, done func(*unstructured.Unstructured) (bool, error)) (bool, error) {
	for {
		select {
		case <-deadline:
			return false, errTimeUp
		case event, ok := <-w.ResultChan():
			switch {
			case !ok || event.Type == watch.Error:
				return false, nil
			case event.Type == watch.Deleted:
				return true, nil
			}
			u, err := unstructuredOf(event.Object)
			if err != nil {
				return false, nil
			}
			if ended, err := done(u); ended {
				return true, err
			}
		}
	}
}

// reasonTime limits the requests that find the reason.
const reasonTime = 5 * time.Second

// reason says why an object is not ready; "" if that is unknown.
func (c *Client) reason(u *unstructured.Unstructured) string {
	if u == nil || c.Explain == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), reasonTime)
	defer cancel()
	return strings.TrimRight(c.Explain(ctx, u), ": ")
}
