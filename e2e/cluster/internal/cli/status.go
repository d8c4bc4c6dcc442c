package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/e2e/cluster/internal/control"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
)

func newStatus(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say in plain words what runs", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := open()
			if err != nil {
				return err
			}
			if !dir.Owned() {
				return fmt.Errorf("no cluster in %s", dir)
			}
			state, err := dir.Read()
			if err != nil {
				return err
			}
			return printStatus(state)
		},
	}
}

func printStatus(state *layout.State) error {
	if !state.Supervisor.Alive() {
		return fmt.Errorf("the cluster in %s does not run any more; \"cluster down\" clears it away", state.Dir)
	}
	fmt.Printf("%s in %s is %s, Kubernetes %s, started %s ago\n", state.Name, state.Dir, state.Phase, state.Version,
		time.Since(state.StartedAt).Round(time.Second))
	fmt.Printf("  node        %s: %s\n", state.Node.Kind, state.Node.Why)
	fmt.Printf("  api server  %s, %s\n", state.APIServer, describeAPI(state))
	if state.Registry != nil {
		fmt.Printf("  registry    %s; from pods %s\n", state.Registry.Host, or(state.Registry.Pods, "not reachable"))
	}
	if state.Git != nil {
		fmt.Printf("  git         %s; from pods %s\n", state.Git.Host, or(state.Git.Pods, "not reachable"))
	}
	fmt.Printf("  kubeconfig  %s\n  logs        %s\nProcesses:\n", state.Kubeconfig, state.LogsDir)
	fmt.Printf("  %-24s pid %d\n", "supervisor", state.Supervisor.PID)
	for _, name := range slices.Sorted(maps.Keys(state.Components)) {
		process := state.Components[name]
		fmt.Printf("  %-24s pid %d%s\n", name, process.PID, health(process))
	}
	for name, pid := range node.Programs(state.Node) {
		fmt.Printf("  %-24s pid %d, on the node\n", name, pid)
	}
	return nil
}

func health(process layout.Process) string {
	text := ""
	if process.Restarts > 0 {
		text = fmt.Sprintf(", restarts: %d", process.Restarts)
	}
	if !process.Alive() {
		text += ", NOT RUNNING"
	}
	return text
}

// describeAPI returns whether the API server answers, and the state of its nodes.
func describeAPI(state *layout.State) string {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	client, err := control.Client(state.Kubeconfig)
	if err != nil {
		return err.Error()
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "does not answer: " + err.Error()
	}
	ready := 0
	for _, item := range nodes.Items {
		if control.NodeReady(&item) == nil {
			ready++
		}
	}
	return fmt.Sprintf("answers; %d of %d nodes ready", ready, len(nodes.Items))
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
