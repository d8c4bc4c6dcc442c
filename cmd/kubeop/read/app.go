package read

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/delivery/health"
)

// appOf reads the app that arguments name. The reader reads its objects.
func appOf(ctx context.Context, c *call.Call, args []string) (target.Object, *v1alpha1.App, objects.Reader, error) {
	of, err := c.Named(target.App, args[0])
	if err != nil {
		return of, nil, objects.Reader{}, err
	}
	config, err := c.Config()
	if err != nil {
		return of, nil, objects.Reader{}, err
	}
	reader, err := c.Client()
	if err != nil {
		return of, nil, objects.Reader{}, err
	}
	logs, err := health.LogsOf(config)
	if err != nil {
		return of, nil, objects.Reader{}, err
	}
	app := &v1alpha1.App{}
	if err := reader.Get(ctx, of.Key(), app); err != nil {
		return of, nil, objects.Reader{}, fmt.Errorf("reading the %s: %w", of, err)
	}
	return of, app, objects.Reader{Client: reader, Logs: logs}, nil
}

// condition returns a condition; one of status Unknown if it is not there.
func condition(of []metav1.Condition, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(of, kind); found != nil {
		return *found
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
}
