// Command cluster is a real Kubernetes in one binary.
//
// It is a multi-call binary. Its name or else its first argument selects one of the cluster's commands (up, down, status, …) or of the programs
// of a cluster (etcd, kube-apiserver, kubelet, kubectl, …). It downloads nothing at run time, so building it needs only the Go module proxy.
package main

import (
	"flag"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

func main() {
	program, args := choose(os.Args)
	// Several components add flags to the process-wide flag set in their init functions. Commands that use this set would get flags of other
	// components, such as CoreDNS's -p in kubectl. Only the kubelet needs the set, for the flags of cAdvisor.
	if program != "kubelet" {
		flag.CommandLine = flag.NewFlagSet(program, flag.ExitOnError)
	}
	// The same applies to the flags that cobra adds to every command. kwok's command cannot use the components' type of --version.
	if program == "cluster" || program == "kwok" {
		pflag.CommandLine = pflag.NewFlagSet(program, pflag.ExitOnError)
	}
	os.Args = append([]string{program}, args...)
	os.Exit(programs[program](args))
}

// choose returns the program to run and its arguments. The program is the base name of argv[0] if a program has that name (a symlink), otherwise
// the first argument, otherwise the cluster command.
func choose(argv []string) (string, []string) {
	if name := filepath.Base(argv[0]); name != "cluster" && programs[name] != nil {
		return name, argv[1:]
	}
	if len(argv) > 1 && programs[argv[1]] != nil {
		return argv[1], argv[2:]
	}
	return "cluster", argv[1:]
}
