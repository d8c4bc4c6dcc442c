// Command decrypt builds the apps whose files SOPS encrypted. The operator, beside which it lies, starts it by itself, confined like any
// process that evaluates. It is a program of its own because SOPS' library brings the clients of five clouds, which the operator does not
// have in its memory.
package main

import (
	"fmt"
	"os"

	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/decrypt/sops"
	"github.com/kubeop/kubeop/internal/sandbox"
)

func main() {
	if err := sops.Isolate(); err != nil {
		fmt.Fprintln(os.Stderr, "decrypt:", err)
		os.Exit(1)
	}
	var args []string
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		args = os.Args[2:]
	}
	os.Exit(sandbox.Serve(args, map[string]sandbox.Function{build.Decrypts: build.Decrypting(sops.New)}))
}
