/*
 * ports.h - the port of each thing that the house serves, so that all fit on one machine.
 *
 * Defaults of options, examples, packaged units and documents use these numbers and no others. A
 * new server takes the next one. Nothing here is opened.
 */
#ifndef BASE_WEB_PORTS_H
#define BASE_WEB_PORTS_H

#define PORT_SOLVER_BUNDLES "7570" /* prover run, prover node: --serve */
#define PORT_VERIFIER_PAGE  "7571" /* verifier node: --page */
#define PORT_SOLVER_PAGE    "7572" /* prover run, prover node: --page */
#define PORT_WATCH_PAGE     "7573" /* watch, job watch: --page */
#define PORT_WATCH_KEPT     "7574" /* job watch: --serve */
#define PORT_VERIFIER_KEPT  "7575" /* verifier node: --serve */
#define PORT_JOB_SERVE      "7576" /* job serve */
#define PORT_PROVER_SERVE   "7577" /* prover serve */
#define PORT_JOB_KEEP       "7578" /* job keep */
#define PORT_JOB_KEEP_PAGE  "7579" /* job keep, job serve --keeper-of: --page */

#endif
