package main

import (
	"context"
	"os"

	_ "time/tzdata" // CronJob time zones, also where the host has no zone files

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	componentcli "k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics of every component
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/kubeop/kubeop/e2e/cluster/internal/cli"
)

// programs maps the names of programs in this binary to their main functions.
var programs map[string]func(args []string) int

func init() {
	programs = map[string]func([]string) int{
		"etcd":                    runEtcd,
		"kube-apiserver":          component(apiserver.NewAPIServerCommand),
		"kube-controller-manager": component(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubelet":                 component(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		"kube-proxy":              component(proxy.NewProxyCommand),
		"kubectl":                 runKubectl,
		"coredns":                 runCoreDNS,
		"kwok":                    runKwok,
		"cluster":                 cli.Main,
	}
}

// component runs a Kubernetes component as its own main package does.
func component(newCommand func() *cobra.Command) func([]string) int {
	return func([]string) int { return componentcli.Run(newCommand()) }
}

func runEtcd(args []string) int {
	etcdmain.Main(append([]string{"etcd"}, args...))
	return 0
}

func runKubectl([]string) int {
	logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) //nolint:errcheck // a bad level shows up when the flags are parsed
	if err := componentcli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
