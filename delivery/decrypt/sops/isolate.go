package sops

import (
	"io"
	"os"

	"github.com/getsops/sops/v3/logging"
)

// Isolate makes of this process one that decrypts. It takes the environment away, where the clients of services look for credentials; files
// and sockets the sandbox takes. The clients try once: another try is the operator's, in which no process waits. The library's loggers are
// silent, for they quote comments.
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
