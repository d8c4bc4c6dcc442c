// Package logs has the operation that streams what the pods of an app write. It reads pods and their logs, and no Secrets.
package logs

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/eventstream"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/server"
	"github.com/kubeop/kubeop/internal/manager/streams"
)

// The limits of streams: streams of a tenant and of all, containers of one stream, bytes of all its lines and of one line, and its duration.
const (
	maxOfTenant   = 10
	maxStreams    = 200
	maxContainers = 50
	maxBytes      = 16 << 20
	maxLine       = 16 << 10
	maxTime       = time.Hour
)

// Operations are the operations of this package.
type Operations struct {
	// Pods reads pods and their logs. It is nil if the manager may not read them.
	Pods corev1client.PodsGetter
	// Allowed returns an error if the caller may not read the logs of an app, or if the app does not exist.
	Allowed func(ctx context.Context, tenant, project, app string) error

	count streams.Count
}

type input struct {
	Tenant    string `path:"tenant" maxLength:"63"`
	Project   string `path:"project" maxLength:"63"`
	App       string `path:"app" maxLength:"63"`
	Follow    bool   `query:"follow" doc:"Also what is written from now on. Pods that start later are not followed."`
	Previous  bool   `query:"previous" doc:"Of the containers' previous run, such as the one that crashed."`
	Container string `query:"container" maxLength:"63" doc:"Only of containers of this name."`
	Tail      int64  `query:"tail" minimum:"0" maximum:"10000" default:"100" doc:"The highest number of lines of each container, counted from the last one."`
	Since     int64  `query:"since" minimum:"0" maximum:"31536000" doc:"The highest age of a line, in seconds; 0 for any age."`
}

// answer is a stream.
type answer struct{ Body func(huma.Context) }

// Register registers the operation.
func (o *Operations) Register(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "getAppLogs", Method: http.MethodGet, Path: "/v1/apps/{tenant}/{project}/{app}/logs", Summary: "What the pods of an app write",
		Description: "The answer is a stream of server-sent events. The data of an event line has pod, container, time and text. end, with a problem, says why the stream ends before all was answered. " +
			"Lines are as the app writes them: nothing in them is masked.",
		Tags: []string{"Apps"}, Security: auth.Required, Errors: problem.Statuses(http.StatusNotFound, http.StatusConflict),
		Responses: map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{eventstream.ContentType: eventstream.Response()}}},
	}, o.logs)
}

func (o *Operations) logs(ctx context.Context, in *input) (*answer, error) {
	if err := o.Allowed(ctx, in.Tenant, in.Project, in.App); err != nil {
		return nil, err
	}
	if o.Pods == nil {
		return nil, notAllowed()
	}
	end, ok := o.count.Begin(in.Tenant, in.Tenant, streams.Limits{OfCaller: maxOfTenant, OfTenant: maxOfTenant, All: maxStreams})
	if !ok {
		return nil, problem.New(problem.TooManyRequests, "The tenant has too many streams of logs, or all tenants together have.").After(5 * time.Second)
	}
	from, err := o.containers(ctx, in)
	if err != nil {
		end()
		return nil, err
	}
	s := &stream{o: o, in: in, from: from, left: maxBytes}
	return &answer{func(to huma.Context) {
		defer end()
		eventstream.Answer{Check: s.check, Stopping: server.Stopping(ctx), Send: s.run}.Serve(ctx, to)
	}}, nil
}

func notAllowed() error {
	return problem.New(problem.Conflict, "The manager may not read logs: an administrator of the cluster sets manager.logs.enabled in the chart's values.")
}

// container names a container of a pod.
type container struct{ namespace, pod, name string }

// containers returns the containers of the app that have started, in the order of their pods.
func (o *Operations) containers(ctx context.Context, in *input) ([]container, error) {
	namespace := v1alpha1.ProjectNamespace(in.Tenant, in.Project)
	pods, err := o.Pods.Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.AppLabel: in.App}}), Limit: maxContainers + 1})
	switch {
	case apierrors.IsForbidden(err):
		logr.FromContextOrDiscard(ctx).Error(err, "Reading pods")
		return nil, notAllowed()
	case err != nil:
		return nil, unavailable(ctx, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	var all []container
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
			began := status.State.Waiting == nil || status.LastTerminationState.Terminated != nil
			if began && (in.Container == "" || in.Container == status.Name) && (!in.Previous || status.RestartCount > 0) {
				all = append(all, container{namespace, pod.Name, status.Name})
			}
		}
	}
	if len(all) == 0 {
		return nil, problem.New(problem.NotFound, "The app has no pods with such containers.")
	}
	if len(all) > maxContainers || pods.Continue != "" {
		return nil, problem.New(problem.Conflict, "The app has too many containers for one stream: one of 50 at most is answered, see the parameter container.")
	}
	return all, nil
}

// unavailable returns the answer that the API server does not respond, and logs the reason.
func unavailable(ctx context.Context, err error) error {
	logr.FromContextOrDiscard(ctx).Error(err, "Reading pods")
	return problem.New(problem.Unavailable, "The cluster does not answer.").After(5 * time.Second)
}
