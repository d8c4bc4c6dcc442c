package sops

import (
	"io"
	"os"

	"github.com/getsops/sops/v3/logging"
)

// Isolate prepares this process for decryption. It clears the environment, in which the clients of services look for credentials; the
// sandbox already forbids files and sockets. It makes the clients try only once: the operator retries, so that no process waits. It
// silences the library's loggers, because they quote comments.
func Isolate() error {
	os.Clearenv()
	for _, logger := range logging.Loggers {
		logger.SetOutput(io.Discard)
	}
	if err := os.Setenv("VAULT_MAX_RETRIES", "0"); err != nil {
		return err
	}
	return os.Setenv("AWS_MAX_ATTEMPTS", "1")
}
