// Command app runs in the pods of the end-to-end test. It is an HTTP server that greets, resolves names and fetches URLs.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Println("printed", os.Args[1])
		return
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello from", os.Getenv("HOSTNAME"))
	})
	http.HandleFunc("/resolve", func(w http.ResponseWriter, r *http.Request) {
		addresses, err := net.DefaultResolver.LookupHost(r.Context(), r.FormValue("name"))
		fmt.Fprintln(w, addresses, err)
	})
	http.HandleFunc("/fetch", func(w http.ResponseWriter, r *http.Request) {
		client := http.Client{Timeout: 5 * time.Second}
		response, err := client.Get(r.FormValue("url"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		_, _ = io.Copy(w, response.Body)
	})
	fmt.Println("listening")
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":8080", nil))
}
