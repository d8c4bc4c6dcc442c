// Command decrypt builds the apps with files that SOPS encrypted. The operator, in the same folder, starts it as a confined evaluation
// process. It is a separate program because SOPS' library links the clients of five clouds, which the operator must not have in its memory.
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
