package read

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// recordsThrough reads the deliveries of an app through a manager.
func recordsThrough(ctx context.Context, c *call.Call, manager *server.Manager, args []string) (target.Object, []v1alpha1.DeliveryRecord, error) {
	of, err := c.Named(target.App, args[0])
	if err != nil {
		return of, nil, err
	}
	answer, err := manager.GetAppHistory(ctx, of.Ref.Tenant, of.Ref.Project, of.Ref.App)
	if err != nil {
		return of, nil, fmt.Errorf("reading the history of the %s: %w", of, manager.Explained(err))
	}
	records := make([]v1alpha1.DeliveryRecord, len(answer.Body.Items))
	for i := range records {
		records[i] = recordOf(&answer.Body.Items[i])
	}
	return of, records, nil
}

// recordOf returns a delivery as the App has it. Its generation is not answered.
func recordOf(d *client.Delivery) v1alpha1.DeliveryRecord {
	record := v1alpha1.DeliveryRecord{
		Revision: d.Revision, Commit: d.Commit, Author: d.Author, Image: d.Image, Release: int(d.Release), StartedAt: metav1.NewTime(d.Started), Result: string(d.Result), Reason: d.Reason,
	}
	if !d.Finished.IsZero() {
		finished := metav1.NewTime(d.Finished)
		record.FinishedAt, record.Duration = &finished, &metav1.Duration{Duration: d.Finished.Sub(d.Started).Truncate(time.Second)}
	}
	return record
}
