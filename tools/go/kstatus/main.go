// Command kstatus says what kstatus makes of objects, for tests: what Flux, Argo CD's kustomizations and kubectl's
// cli-utils wait for.
//
// It reads a JSON array of objects from stdin, and writes a JSON array of their statuses, in the same order.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run() error {
	var objects []unstructured.Unstructured
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		return err
	}
	statuses := make([]string, 0, len(objects))
	for i := range objects {
		result, err := status.Compute(&objects[i])
		if err != nil {
			return err
		}
		statuses = append(statuses, result.Status.String())
	}
	return json.NewEncoder(os.Stdout).Encode(statuses)
}
