package read

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// logs shows what an app writes.
type logs struct {
	*call.Call
	follow, previous bool
	container        string
	tail             int64
	since            time.Duration

	write sync.Mutex
}

// Logs returns the command logs.
func Logs(c *call.Call) *cobra.Command {
	l := &logs{Call: c}
	command := &cobra.Command{
		Use:   "logs APP",
		Short: "Show the logs of all pods of an app",
		Long: `Show the logs of all containers of all pods of an app and of its hooks, each line with its pod and container. With --follow, new lines are
shown until it is interrupted, and pods that start later are not followed. With --server the manager reads them, if manager.logs.enabled of its
chart lets it.`,
		Example: `  # The last lines of all pods, and then what they write
  kubeop logs acme/shop/web --follow

  # Why a container crashed
  kubeop logs acme/shop/web --previous --tail 50`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteObject(target.App),
		RunE:              func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args) },
	}
	flags := command.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "also show what is written from now on")
	flags.BoolVar(&l.previous, "previous", false, "show the logs of the containers' previous run")
	flags.StringVarP(&l.container, "container", "c", "", "show only containers of this name")
	flags.Int64Var(&l.tail, "tail", 20, "show at most so many last lines of each container; -1 for all")
	flags.DurationVar(&l.since, "since", 0, "show only lines that are not older, such as 10m")
	return command
}

// run shows them from the manager or from the cluster.
func (l *logs) run(ctx context.Context, args []string) error {
	manager, err := l.Through()
	switch {
	case err != nil:
		return err
	case manager != nil:
		return l.through(ctx, manager, args)
	}
	return l.fromCluster(ctx, args)
}

// mostLines is how many last lines of a container the manager answers.
const mostLines = 10_000

// through shows the logs that a manager streams.
func (l *logs) through(ctx context.Context, manager *server.Manager, args []string) error {
	of, err := l.Named(target.App, args[0])
	if err != nil {
		return err
	}
	wanted := client.GetAppLogsParams{Follow: l.follow, Previous: l.previous, Container: l.container, Tail: l.tail, Since: int64(math.Ceil(l.since.Seconds()))}
	switch {
	case l.tail < 0:
		wanted.Tail = mostLines
	case l.tail == 0 || l.tail > mostLines:
		return fmt.Errorf("--tail: a manager shows 1 to %d last lines of each container", mostLines)
	}
	names := map[string]string{}
	for event, err := range manager.GetAppLogsEvents(ctx, of.Ref.Tenant, of.Ref.Project, of.Ref.App, wanted) {
		var line struct{ Pod, Container, Text string }
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("reading the logs of the %s: %w", of, manager.Explained(err))
		case event.Kind != "line":
			continue
		}
		if err := json.Unmarshal(event.Data, &line); err != nil {
			return fmt.Errorf("reading a line of the logs: %w", err)
		}
		name := stream{pod: line.Pod, container: line.Container}.name()
		if names[name] == "" {
			names[name] = l.Paint.Stream(len(names), name)
		}
		if err := l.print(names[name], line.Text); err != nil {
			return err
		}
	}
	return nil
}

func (l *logs) fromCluster(ctx context.Context, args []string) error {
	of, app, reader, err := appOf(ctx, l.Call, args)
	if err != nil {
		return err
	}
	config, err := l.Config()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	nodes, err := reader.Of(ctx, app)
	if err != nil {
		return err
	}
	streams, err := l.streams(objects.Pods(nodes))
	if err != nil {
		return err
	}
	if len(streams) == 0 {
		return fmt.Errorf("the %s has no pods with such containers; `kubeop tree %s` shows what it has", of, of.Args())
	}
	failures := make(chan error, len(streams))
	for i, stream := range streams {
		go func() { failures <- l.copy(ctx, clients, stream, l.Paint.Stream(i, stream.name())) }()
	}
	failed, gone := 0, 0
	for range streams {
		err := <-failures
		if err == nil || ctx.Err() != nil {
			continue
		}
		if apierrors.IsNotFound(err) { // A rollout removed the pod or its container after it was listed.
			gone++
		} else {
			failed++
		}
		if _, err := fmt.Fprintln(l.Err, err); err != nil {
			return err
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d logs could not be read to the end", failed, len(streams))
	case gone == len(streams):
		return errors.New("all pods, or their containers, were removed before their logs could be read; run the command again")
	}
	return nil
}

// stream is the log of one container.
type stream struct{ namespace, pod, container string }

func (s stream) name() string { return s.pod + " " + s.container + " | " }

// streams returns the containers whose logs to show, init containers first.
func (l *logs) streams(pods []*objects.Node) ([]stream, error) {
	var all []stream
	for _, node := range pods {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(node.Object.Object, pod); err != nil {
			return nil, fmt.Errorf("reading the pod %s: %w", node.Name, err)
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
			began := status.State.Waiting == nil || status.LastTerminationState.Terminated != nil
			if began && (l.container == "" || l.container == status.Name) && (!l.previous || status.RestartCount > 0) {
				all = append(all, stream{namespace: node.Namespace, pod: node.Name, container: status.Name})
			}
		}
	}
	return all, nil
}

// copy prints one log, each line after the prefix.
func (l *logs) copy(ctx context.Context, clients kubernetes.Interface, from stream, prefix string) error {
	options := &corev1.PodLogOptions{Container: from.container, Follow: l.follow, Previous: l.previous}
	if l.tail >= 0 {
		options.TailLines = &l.tail
	}
	if l.since > 0 {
		seconds := int64(l.since.Seconds())
		options.SinceSeconds = &seconds
	}
	log, err := clients.CoreV1().Pods(from.namespace).GetLogs(from.pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", from.pod, err)
	}
	// Nothing was written, so closing cannot lose anything.
	defer func() { _ = log.Close() }()
	// A line that is longer than the buffer is printed in parts.
	reader := bufio.NewReaderSize(log, 64<<10)
	for {
		line, _, err := reader.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the log of %s: %w", from.pod, err)
		}
		if err := l.print(prefix, string(line)); err != nil {
			return err
		}
	}
}

// print prints a line as a whole, so that lines of several containers do not mix.
func (l *logs) print(prefix, line string) error {
	l.write.Lock()
	defer l.write.Unlock()
	_, err := io.WriteString(l.Out, prefix+line+l.Paint.Reset()+"\n")
	return err
}
