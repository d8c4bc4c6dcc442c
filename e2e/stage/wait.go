package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// pollInterval is the pause between two polls of Until.
const pollInterval = 50 * time.Millisecond

// final is an error that is not retried.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final marks an error so that Until stops.
func Final(err error) error { return final{err} }

// Until polls until there is no error. After the deadline it returns the last error.
func Until(parent context.Context, within time.Duration, what string, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(parent, within)
	defer cancel()
	var last error
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		// An error from the end of the context does not describe the polled object.
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if f := (final{}); errors.As(err, &f) {
			return fmt.Errorf("%s: %w", what, last)
		}
		select {
		case <-ctx.Done():
			if parent.Err() != nil {
				return fmt.Errorf("%s: %w", what, context.Cause(parent))
			}
			return fmt.Errorf("%s: not within %s: %w", what, within, last)
		case <-time.After(pollInterval):
		}
	}
}

// Conditioned is any kind of this API.
type Conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
	GetReconcileStatus() *v1alpha1.ReconcileStatus
}

// Ready checks that an object's current generation is ready. The error is the condition that explains why not.
func (s *Stage) Ready(ctx context.Context, object Conditioned, namespace, name string) error {
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return err
	}
	if seen := object.GetReconcileStatus().ObservedGeneration; seen != object.GetGeneration() {
		return fmt.Errorf("generation %d is not done yet: %s", object.GetGeneration(), describe(object.GetConditions()))
	}
	if !meta.IsStatusConditionTrue(object.GetConditions(), v1alpha1.ReadyCondition) {
		return errors.New(describe(object.GetConditions()))
	}
	return nil
}

// exceptional are conditions that are normally not True.
var exceptional = map[string]bool{v1alpha1.DriftedCondition: true, v1alpha1.RemediatedCondition: true, v1alpha1.ImageKeptCondition: true, v1alpha1.FrozenCondition: true}

// describe returns the first abnormal condition, or Ready.
func describe(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue && c.Type != v1alpha1.ReadyCondition && !exceptional[c.Type] {
			return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ReadyCondition); ready != nil {
		return fmt.Sprintf("Ready=%s %s: %s", ready.Status, ready.Reason, ready.Message)
	}
	return "no conditions yet"
}

// Get sends a GET and returns the body. An answer other than 200 is an error.
func Get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("getting %s: %w", url, err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return "", fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("getting %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return strings.TrimSpace(string(body)), nil
}

// GetService sends a GET to the first port of a Service at its cluster address, which the host routes to a real node.
func (s *Stage) GetService(ctx context.Context, namespace, name string) (string, error) {
	service := &corev1.Service{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		return "", err
	}
	return Get(ctx, fmt.Sprintf("http://%s:%d/", service.Spec.ClusterIP, service.Spec.Ports[0].Port))
}
