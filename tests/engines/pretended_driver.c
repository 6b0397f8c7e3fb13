/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver in which there is no device and every kernel can be loaded: enough for cuDNN to compile the plans of a GPU that is not here.
 * make_pretended_driver.sh adds the driver's other functions, all of which fail. */
int cuLibraryLoadData(void** library) { return *library = (void*)8, 0; }
int cuLibraryUnload(void) { return 0; }
int cuLibraryGetKernel(void** kernel) { return *kernel = (void*)16, 0; }
int cuLibraryGetModule(void** module) { return *module = (void*)24, 0; }
int cuKernelGetFunction(void** function) { return *function = (void*)32, 0; }
int cuKernelSetAttribute(void) { return 0; }
int cuKernelGetAttribute(int* value) { return *value = 0; }
int cuFuncSetAttribute(void) { return 0; }
int cuFuncGetAttribute(int* value) { return *value = 0; }
int cuModuleLoadData(void** module) { return *module = (void*)24, 0; }
int cuModuleLoadDataEx(void** module) { return *module = (void*)24, 0; }
int cuModuleGetFunction(void** function) { return *function = (void*)32, 0; }
int cuModuleUnload(void) { return 0; }
