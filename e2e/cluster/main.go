// Command cluster is a real Kubernetes in one binary.
//
// It is a multi-call binary: the name it is called by, or else its first argument, chooses between the cluster's own
// commands (up, down, status, …) and the programs a cluster is made of (etcd, kube-apiserver, kubelet, kubectl, …).
// Nothing is downloaded at run time, so a cluster comes up wherever the Go module proxy is reachable.
package main

import (
	"flag"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

func main() {
	program, args := choose(os.Args)
	// Importing every component also runs their init functions, several of which put flags on the process-wide flag
	// set; commands that adopt that set would then see each other's flags (CoreDNS's -p against kubectl's). Only the
	// kubelet looks for flags of its own there, those of cAdvisor.
	if program != "kubelet" {
		flag.CommandLine = flag.NewFlagSet(program, flag.ExitOnError)
	}
	// The same for the flags that cobra adds to every command by itself; the components' --version is of a type that
	// kwok's command does not expect.
	if program == "cluster" || program == "kwok" {
		pflag.CommandLine = pflag.NewFlagSet(program, pflag.ExitOnError)
	}
	os.Args = append([]string{program}, args...)
	os.Exit(programs[program](args))
}

// choose returns the program to run and its arguments: the base name of argv[0] when it is a program's name (a
// symlink), else the first argument, else the cluster command itself.
func choose(argv []string) (string, []string) {
	if name := filepath.Base(argv[0]); name != "cluster" && programs[name] != nil {
		return name, argv[1:]
	}
	if len(argv) > 1 && programs[argv[1]] != nil {
		return argv[1], argv[2:]
	}
	return "cluster", argv[1:]
}
